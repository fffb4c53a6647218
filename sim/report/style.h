#pragma once

namespace ballast::sim {

/// The page's style sheet. Colours of lines are those of Okabe and Ito, "Color Universal Design"
/// (2008), lighter or darker as light and dark pages need; loads go from blue (too little) over
/// grey (perfect balance) to orange (too much), which the usual kinds of colour blindness tell
/// apart. Has none of the characters < and &.
extern const char* const style_sheet;

}  // namespace ballast::sim

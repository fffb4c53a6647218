#include "sim/npy/npy_writer.h"

#include "sim/npy/npy_header.h"

namespace ballast::sim {

NpyWriter::NpyWriter(OutputDirectory& directory, const std::string& name, const std::string& dtype,
                     const std::vector<std::size_t>& shape)
    : file_(directory, name) {
  file_.append(npy_header(dtype, shape));
}

}  // namespace ballast::sim

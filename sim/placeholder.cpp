namespace ballast::sim {}

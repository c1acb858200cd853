# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/topology/gpu_graph.cpp \
	common/topology/gpu_graph.hpp \
	common/topology/gres_join.cpp \
	common/topology/gres_join.hpp \
	common/topology/gres_links.cpp \
	common/topology/hwloc_xml.cpp \
	common/topology/topo_matrix.cpp \
	common/topology/topology_text.cpp \
	common/topology/words.cpp \
	common/topology/words.hpp \
	common/topology/xml_text.cpp \
	common/topology/xml_text.hpp

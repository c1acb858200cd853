// SPDX-License-Identifier: GPL-2.0-or-later
//
// The GPUs of one node class and how they are joined.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/gpu_set.hpp"
#include "common/base/result.hpp"

namespace sluice {

/// How two GPUs reach each other without a direct link, worst first; the names are those of
/// `nvidia-smi topo -m`. `unknown` stands where a source says nothing: it ranks below all others.
enum class PciPath { unknown, sys, node, phb, pxb, pix };

/// GB/s in one direction that one ring gets over such a path (PCIe 3.0 x16 with what bridges and
/// sockets take; the order is what matters, not the last digit). unknown is taken as sys.
double path_bandwidth_gbps(PciPath path);

struct Gpu {
    std::string pci_bus_id;  ///< "0000:06:00.0", or empty where the source does not know it
    std::string model;       ///< "Tesla V100-SXM2-16GB", or empty
    int numa = -1;           ///< NUMA node by OS index, -1 where unknown
    std::string cpus;        ///< OS indices, "0-19,40-59", or empty
};

/// One edge of the complete graph over the GPUs.
struct GpuLink {
    int links = 0;         ///< direct links (NVLink, XGMI) between the two
    double link_gbps = 0;  ///< GB/s in one direction of all of them together
    PciPath path = PciPath::unknown;

    /// What one ring over this edge gets: the direct links where there are any, else the path.
    double gbps() const { return links > 0 ? link_gbps : path_bandwidth_gbps(path); }
};

class GpuGraph {
  public:
    explicit GpuGraph(int count = 0);

    int size() const { return static_cast<int>(gpus_.size()); }
    const Gpu& gpu(int index) const { return gpus_[static_cast<std::size_t>(index)]; }
    Gpu& gpu(int index) { return gpus_[static_cast<std::size_t>(index)]; }
    /// Symmetric; link(i, i) has no meaning.
    const GpuLink& link(int a, int b) const { return links_[at(a, b)]; }
    void set_link(int a, int b, const GpuLink& link);

    /// True where direct links end in a switch (NVSwitch): a GPU reaches every other one at its
    /// full rate, but all its traffic shares that rate. Readers set it.
    bool switched() const { return switched_; }
    void set_switched(bool switched) { switched_ = switched; }

    /// False where the source gave neither links nor paths nor NUMA nodes (a matrix of zeros): then
    /// any set is as good as any other as far as we know.
    bool informative() const;

  private:
    std::size_t at(int a, int b) const;

    std::vector<Gpu> gpus_;
    std::vector<GpuLink> links_;
    bool switched_ = false;
};

/// GB/s in one direction of one direct link when the source gives only their number: NVLink of
/// V100, A100 and H100 (NVIDIA's data sheets: 25 in each direction).
inline constexpr double default_link_gbps = 25.0;

/// The text of `nvidia-smi topo -m`: a header row, one row a GPU, with NICs, CPU Affinity and NUMA
/// Affinity columns as they may come; blank separated or tab separated; the legend is skipped.
/// Errors name line and column. `name` stands in messages for the file.
Result<GpuGraph> read_topo_matrix(std::string_view text, std::string_view name);

/// hwloc XML (`lstopo --of xml`), 1.x and 2.x: GPUs are the NVML, else CUDA, RSMI or OpenCL OS
/// devices, else the PCI devices of class 0300 and 0302, by PCI bus id; links from hwloc's
/// NVLinkBandwidth / XGMIBandwidth distances; paths from the common ancestor in the PCI tree; GPUs
/// without a NUMA parent are kept.
Result<GpuGraph> read_hwloc_xml(std::string_view text, std::string_view name);

/// One GPU as gres.conf tells it: Links ("-1,2,1,0": direct links to each GPU, -1 itself; may be
/// empty) and Cores (core indices "0-7"; may be empty). GPUs with equal Cores are taken to share a
/// NUMA node.
struct GresDevice {
    std::string links;
    std::string cores;
};
/// All zero links and no cores give a graph that is not informative(), no error; a row with too
/// many or too few numbers is an error that names the GPU.
Result<GpuGraph> graph_of_gres(const std::vector<GresDevice>& devices);

/// Reads a topology file of any of the kinds above, told apart by content. At most 16 MiB.
/// not_found where the file is not there.
Result<GpuGraph> read_topology_file(const std::string& path);

/// A text form of the graph that is equal for equal graphs: nodes with the same fingerprint share
/// one table.
std::string fingerprint(const GpuGraph& graph);

}  // namespace sluice

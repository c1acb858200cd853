# SPDX-License-Identifier: GPL-2.0-or-later
dist_man_MANS += \
	doc/man1/sluice.1 \
	doc/man1/sluice-emit.1 \
	doc/man1/sluice-fit.1 \
	doc/man1/sluice-losses.1 \
	doc/man1/sluice-pick.1 \
	doc/man1/sluice-report.1 \
	doc/man1/sluice-sim.1 \
	doc/man1/sluice-status.1 \
	doc/man1/sluice-topo.1 \
	doc/man5/sluice.conf.5 \
	doc/man7/sluice-train.7 \
	doc/man8/sluice-admin.8
EXTRA_DIST += \
	doc/README.md \
	doc/formats/emit-v1.txt \
	doc/formats/jobspec-v1.txt \
	doc/formats/journal-v1.txt \
	doc/formats/placements-v1.txt \
	doc/formats/record-v1.txt \
	doc/formats/runs-v1.txt \
	doc/formats/step-samples-v1.txt \
	doc/formats/step-time-v1.txt \
	doc/formats/summary-v1.txt \
	doc/formats/topology-v1.txt

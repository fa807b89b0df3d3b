/** `hyperkube machine`: the commands that "hyperkube build" runs on machines. */
import type { Command, Program } from '#lib/program.ts'
import { defineProgram } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    short: 'Execute requests from standard input on this machine',
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'keep',
    short: 'Supervise services on machines without systemd',
    load: async () => (await import('./serve.ts')).keep,
  },
  {
    name: 'proxy',
    short: 'Forward connections to API servers',
    load: async () => (await import('./proxy.ts')).proxy,
  },
  {
    name: 'etcd-snapshots',
    short: 'Take snapshots of etcd',
    load: async () => (await import('./etcd-snapshots.ts')).etcdSnapshots,
  },
  {
    name: 'old-programs',
    short: 'Remove unused copies of this program',
    load: async () => (await import('./old-programs.ts')).oldPrograms,
  },
  {
    name: 'containerd',
    short: 'Run the containerd of the node with the pod network of flannel',
    load: async () => (await import('./containerd.ts')).containerd,
  },
]

export const machine: Program = defineProgram({
  name: 'machine',
  long: 'machine contains the commands that "hyperkube build" runs on the machines of a cluster.',
  version: kubernetesVersion(),
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})

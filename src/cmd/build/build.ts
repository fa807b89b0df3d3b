/** `hyperkube build`: from machines reached over SSH to a cluster, as RKE did it. */
import { type Command, defineProgram, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { OUTPUT_FLAGS } from './flags.ts'

const COMMANDS: readonly Command[] = [
  {
    name: 'up',
    short: 'Makes the cluster what cluster.yml says',
    load: async () => (await import('./up.ts')).up,
  },
  {
    name: 'plan',
    short: 'Shows what up would do',
    load: async () => (await import('./up.ts')).plan,
  },
  {
    name: 'config',
    short: 'Asks for what a cluster.yml needs, and writes one',
    load: async () => (await import('./config.ts')).config,
  },
  {
    name: 'status',
    short: 'Shows how machines and nodes are',
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'remove',
    short: 'Takes the cluster off its machines, with all its data',
    load: async () => (await import('./remove.ts')).remove,
  },
  {
    name: 'cert',
    short: 'Makes new certificates, or requests for them',
    load: async () => (await import('./cert.ts')).cert,
  },
  {
    name: 'encrypt',
    short: 'Gives Secrets a new key',
    load: async () => (await import('./encrypt.ts')).encrypt,
  },
  {
    name: 'etcd',
    short: 'Saves, lists and restores snapshots of etcd',
    load: async () => (await import('./etcd.ts')).etcd,
  },
  {
    name: 'util',
    short: 'Writes the state or the kubeconfig again',
    load: async () => (await import('./util.ts')).util,
  },
]

export const build: Program = defineProgram({
  name: 'build',
  aliases: ['rke'],
  long:
    "build makes a cluster of machines that are reached over SSH, from one file that names them and their roles: RKE's cluster.yml, " +
    'without Docker. Called by the name rke it is the same.',
  version: kubernetesVersion(),
  flags: { output: OUTPUT_FLAGS },
  passesFlags: true,
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})

/** `hyperkube down`: stops the cluster of a data directory. */
import { removeLinks, stopExtraNodes } from '#cluster/machine/machine-leftovers.ts'
import { stopContainerd } from '#containerd/stop.ts'
import { flag } from '#lib/flags/flags.ts'
import { duration } from '#lib/flags/kinds.ts'
import { defineProgram, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { removeClusterFile } from './cluster-file.ts'
import { stopCluster } from './cluster-lock.ts'
import { DATA_DIR_FLAGS, dataDir } from './data-dir.ts'

/** Longer than running requests may take. */
export const STOP_MS = 30_000

export const down: Program = defineProgram({
  name: 'down',
  long:
    'down stops the cluster of a data directory and the containers of its pods on this machine. The state stays: ' +
    '"hyperkube up" continues with it.',
  version: kubernetesVersion(),
  flags: {
    cluster: {
      'data-dir': DATA_DIR_FLAGS['data-dir'],
      timeout: flag(duration, STOP_MS, 'time that running requests get to finish'),
    },
  },
  async run({ flags, stdout, clock, ...context }) {
    const { path } = dataDir({ ...flags, datastore: 'sqlite' }, context)
    const { wasRunning, lock } = await stopCluster(path, clock, flags.timeout)
    try {
      const hadFurther = await stopExtraNodes({ dataDir: path, clock, ...context })
      const hadContainers = (await stopContainerd({ dataDir: path, clock, ...context })) || hadFurther
      await removeLinks(path)
      // A killed cluster leaves the file behind.
      await removeClusterFile(path)
      const hasStopped = wasRunning || hadContainers
      stdout.write(hasStopped ? `Stopped the cluster in ${path}\n` : `No cluster is running in ${path}\n`)
      return 0
    } finally {
      lock?.release()
    }
  },
})

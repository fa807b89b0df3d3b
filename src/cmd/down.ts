/** `hyperkube down`: stops the cluster of a data directory, wherever it was started. */
import { removeLinks, stopFurtherNodes } from '#cluster/machine-leftovers.ts'
import { stopContainerd } from '#kubelet/containerd/stop.ts'
import type { Clock } from '#lib/clock.ts'
import { flag } from '#lib/flags/flags.ts'
import { duration } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { comesTrue, isRunning, readClusterFile, removeClusterFile } from './cluster-file.ts'
import { DATA_DIR_FLAGS, dataDir } from './data-dir.ts'

/** More than requests may take that are running. */
const WAIT_MS = 30_000

export const down: Program = defineProgram({
  name: 'down',
  long:
    'down stops the cluster of a data directory, and the containers of its pods on this machine. Its state stays: ' +
    '"hyperkube up" goes on where it stopped.',
  version: kubernetesVersion(),
  flags: {
    cluster: {
      'data-dir': DATA_DIR_FLAGS['data-dir'],
      timeout: flag(duration, WAIT_MS, 'how long requests that are running may take to finish'),
    },
  },
  async run({ flags, stdout, clock, ...context }) {
    const { path } = dataDir({ ...flags, datastore: 'sqlite' }, context)
    const pid = await stopCluster(path, clock, flags.timeout)
    const hadFurther = await stopFurtherNodes({ dataDir: path, clock, ...context })
    const hadContainers = (await stopContainerd({ dataDir: path, clock, ...context })) || hadFurther
    await removeLinks(path)
    const wasRunning = pid !== undefined || hadContainers
    stdout.write(wasRunning ? `Stopped the cluster in ${path}\n` : `No cluster is running in ${path}\n`)
    return 0
  },
})

/** Returns the process that it was; undefined when none was running. Throws ProgramError when it does not stop. */
export async function stopCluster(path: string, clock: Clock, waitMs: number = WAIT_MS): Promise<number | undefined> {
  const cluster = await readClusterFile(path)
  if (cluster === undefined) return undefined
  const { pid } = cluster
  if (!isRunning(pid)) {
    await removeClusterFile(path)
    return undefined
  }
  process.kill(pid, 'SIGTERM')
  if (await comesTrue(clock, waitMs, () => !isRunning(pid))) return pid
  throw new ProgramError(
    `The cluster in ${path} (process ${pid}) has not stopped in time; "kill -9 ${pid}" ends it at once`,
  )
}

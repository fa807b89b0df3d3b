/** A cluster for one run: `hyperkube up` with a data directory of its own, or one that is already there. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const HYPERKUBE = join(import.meta.dirname, '..', '..', 'bin', 'hyperkube')

export interface Cluster extends AsyncDisposable {
  readonly kubeconfig: string
  readonly nodes: number
}

/** Starts a cluster whose files and log are in `folder`. Rejects when it ends before it is ready. */
export async function startCluster(folder: string): Promise<Cluster> {
  const kubeconfig = join(folder, 'kubeconfig')
  const flags = ['--data-dir', join(folder, 'data'), '--kubeconfig', kubeconfig, '--secure-port', '0', '-o', 'json']
  const child = spawn(HYPERKUBE, ['up', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stderr.pipe(createWriteStream(join(folder, 'hyperkube.log')))
  const [ready] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), once(child, 'exit')])
  if (typeof ready !== 'string')
    throw new Error(`The cluster did not start; its log is ${join(folder, 'hyperkube.log')}`)
  const { nodes } = JSON.parse(ready) as { nodes: number }
  return { kubeconfig, nodes, [Symbol.asyncDispose]: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

/**
 * A cluster for one run, with files of its own: `hyperkube up`, or the programs one by one, for tests that need nodes and a
 * scheduler, but no containers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { type Make, startComponents } from '../upstream/components.ts'
import { end } from '../upstream/kube-apiserver.ts'
import { HYPERKUBE, startOurs, writeKubeconfig } from '../upstream/ours.ts'
import { startReference } from '../upstream/reference.ts'
import { startVirtualNodes } from '../upstream/virtual-nodes.ts'

export interface Cluster extends AsyncDisposable {
  readonly kubeconfig: string
  readonly nodes: number
}

/** Starts a cluster whose files and log are in `folder`. Rejects when it ends before it is ready. */
export async function startCluster(folder: string): Promise<Cluster> {
  const kubeconfig = join(folder, 'kubeconfig')
  const flags = ['--data-dir', join(folder, 'data'), '--kubeconfig', kubeconfig, '--secure-port', '0', '-o', 'json']
  const child = spawn(HYPERKUBE, ['up', '--nodes=0', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
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

const NODES = [{ name: 'virtual-1' }, { name: 'virtual-2' }]

/**
 * A kube-apiserver and a kube-controller-manager of either make, our kube-scheduler, and two nodes on which pods run without
 * containers. Logs are in `folder`.
 */
export async function startPrograms(
  folder: string,
  { server, manager }: { readonly server: Make; readonly manager: Make },
): Promise<Cluster> {
  await using starting = new AsyncDisposableStack()
  const running = await (server === 'ours' ? startOurs(folder) : startReference(folder))
  starting.defer(() => running.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), running)
  const components = await startComponents(folder, kubeconfig, { manager, scheduler: 'ours' })
  for (const child of components.values()) starting.defer(() => end(child, 'SIGTERM'))
  const nodes = await startVirtualNodes({ server: running, nodes: NODES })
  starting.defer(() => nodes.stop())
  const started = starting.move()
  return { kubeconfig, nodes: NODES.length, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

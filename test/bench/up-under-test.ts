/**
 * Starts `hyperkube up` for a benchmark, as npm installs it, with a temporary data directory and usually simulated
 * nodes.
 */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { end, freePort } from '../upstream/kube-apiserver.ts'
import { pause } from './http-load.ts'
import { installed, type ServerUnderTest } from './server-under-test.ts'

export type Target = Pick<ServerUnderTest, 'port' | 'tls'>

export interface ClusterUnderTest extends Target {
  readonly pids: readonly number[]
  /** Resolves when its nodes are ready. */
  readonly nodesReady: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Resolves when the server accepts requests; nodes become ready later. */
export async function startUp(
  folder: string,
  nodes: number,
  runtime: 'simulated' | 'containerd' = 'simulated',
): Promise<ClusterUnderTest> {
  const port = await freePort()
  const data = join(folder, 'data')
  const where = [`--data-dir=${data}`, `--kubeconfig=${join(folder, 'kubeconfig')}`, `--secure-port=${port}`]
  const up = ['up', `--runtime=${runtime}`, `--nodes=${nodes}`, '-o=json', ...where]
  const child = spawn(await installed(), up, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`up ended with ${code} before it was ready`)))
  })
  ready.catch(() => undefined)
  const tls = async (): Promise<Target['tls']> => {
    const [ca = '', cert = '', key = ''] = await Promise.all(
      ['ca.crt', 'admin.crt', 'admin.key'].map((name) => readFile(join(data, 'pki', name), 'utf8')),
    )
    return { ca, cert, key }
  }
  let known: Target['tls'] | undefined
  while (known === undefined) {
    await pause(20)
    known = await tls().catch(() => undefined)
  }
  return { port, tls: known, pids: [child.pid ?? 0], nodesReady: () => ready, stop: () => end(child, 'SIGTERM') }
}

/** The cluster behind the console: upstream's kube-apiserver, etcd and kube-controller-manager, with simulated nodes. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { every, realClock } from '#lib/clock.ts'

import { startManager } from '../components.ts'
import { end } from '../kube-apiserver.ts'
import { ask, writeKubeconfig } from '../ours.ts'
import { upstreamPrograms } from '../programs.ts'
import { type Reference, startReference } from '../reference.ts'
import { startVirtualNodes } from '../virtual-nodes.ts'

const run = promisify(execFile)
export const NODE = 'node-0'

export interface UpstreamCluster {
  /** As administrator; `input` is its standard input. Rejects with its words when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>
  /** Runs a line of a shell in a folder, as the administrator of the cluster. */
  shell(line: string, folder: string): Promise<string>
  /** A file with a kubeconfig of a ServiceAccount. */
  kubeconfigOf(namespace: string, name: string): Promise<string>
  /** Writes the status of the node every second, as a busy kubelet, until it is stopped. */
  writeNodeStatus(): { readonly writes: () => number; stop(): Promise<void> }
}

export async function startUpstreamCluster(folder: string, closing: AsyncDisposableStack): Promise<UpstreamCluster> {
  await mkdir(folder, { recursive: true })
  const reference = await startReference(folder)
  closing.defer(() => reference.stop())
  const admin = await writeKubeconfig(join(folder, 'admin.kubeconfig'), reference)
  const manager = await startManager(folder, admin, { make: "upstream's" })
  closing.defer(() => end(manager, 'SIGTERM'))
  const nodes = await startVirtualNodes({ server: reference, nodes: [{ name: NODE }], binds: true })
  closing.defer(() => nodes.stop())
  const { kubectl: program } = await upstreamPrograms(['kubectl'], (line) => process.stderr.write(`${line}\n`))
  const env = { ...process.env, KUBECONFIG: admin, PATH: `${dirname(program)}:${process.env['PATH'] ?? ''}` }
  const shell = async (line: string, cwd: string): Promise<string> =>
    (await run('bash', ['-o', 'pipefail', '-c', line], { cwd, env })).stdout
  return {
    shell,
    async kubectl(args, input = '') {
      const running = run(program, [...args], { env })
      running.child.stdin?.end(input)
      return (await running).stdout
    },
    async kubeconfigOf(namespace, name) {
      const token = await shell(`kubectl create token -n ${namespace} ${name}`, folder)
      const file = join(folder, `${name}.kubeconfig`)
      await writeFile(file, JSON.stringify(configOf(reference, token.trim())), { mode: 0o600 })
      return file
    },
    writeNodeStatus: () => writeNodeStatus(reference),
  }
}

function configOf({ port, tls }: Reference, token: string): object {
  const authority = Buffer.from(tls.ca).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'c', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': authority } },
    ],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
}

function writeNodeStatus(reference: Reference): ReturnType<UpstreamCluster['writeNodeStatus']> {
  let writes = 0
  let writing = Promise.resolve()
  const write = async (): Promise<void> => {
    const status = { nodeInfo: { bootID: `boot-${writes}` } }
    const path = `/api/v1/nodes/${NODE}/status`
    const answer = await ask(reference, { method: 'PATCH', path, body: { status } })
    if (answer.status !== 200) throw new Error(`The status of the node was refused: ${JSON.stringify(answer.body)}`)
    writes++
  }
  const timer = every(realClock, 1000, () => (writing = writing.then(write)))
  return {
    writes: () => writes,
    async stop() {
      timer.cancel()
      await writing
    },
  }
}

/**
 * Runs the process of an extra node: kubelet, kube-proxy and flannel, with a containerd, in the network namespace in
 * which it was started.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { openConnection } from '#client/connection/connection.ts'
import { readPair } from '#component/key-pair.ts'
import { createLiveFiles } from '#component/live-files.ts'
import { startContainerd } from '#containerd/start.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import { startKubelet } from '#kubelet/kubelet.ts'
import { readMachine } from '#kubelet/machine/machine.ts'
import { stopAll } from '#kubelet/runtime/stop-all.ts'

import { CONFIGURED, followAddresses, kubeletOptions, type NodeConnect } from './container-node.ts'
import { type NodeTask, PKI_FOLDER, TASK_FILE } from './extra-nodes.ts'
import { startMachineFlannel } from './machine-flannel.ts'
import { kubeletFolder } from './machine-folders.ts'
import { familiesOf, startMachineProxy } from './machine-proxy.ts'
import { NODE_LINK } from './node-namespace.ts'

export interface NodeProcessOptions extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log' | 'readFile'> {
  /** The node's directory. */
  readonly dataDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether containers continue after the end. */
  readonly leavesContainers: () => boolean
}

const PORT = 10_250
const GRACE_SECONDS = 5

/** Resolves when the node is registered. */
export async function startNodeProcess(options: NodeProcessOptions, closing: AsyncDisposableStack): Promise<void> {
  const { dataDir, readFile, log, leavesContainers } = options
  const task = JSON.parse(await readFile(join(dataDir, TASK_FILE))) as NodeTask
  const { name, addresses, podCidr, backend, nodeCidr, clusterDns } = task
  const [address = ''] = addresses
  const connectAs = (who: string): Promise<NodeConnect> => connect(options, task, who, closing)
  const rootDir = kubeletFolder(dataDir)
  await mkdir(rootDir, { recursive: true, mode: 0o750 })
  const [found, containerd] = await Promise.all([
    readMachine({ rootDir, maxPods: CONFIGURED.maxPods, address }),
    startContainerd(options, closing),
  ])
  const machine = { ...found, addresses }
  closing.defer(async () => {
    if (!leavesContainers()) await stopAll(containerd.runtime, GRACE_SECONDS, log)
  })
  const external = { name: NODE_LINK, addresses, cidr: nodeCidr }
  const asFlannel = { ...options, node: name, podCidr, backend, external, connect: await connectAs('flannel') }
  const flannel = startMachineFlannel(asFlannel, closing)
  const serving = await servingOf(options, address, closing)
  const node = {
    ...options,
    name,
    machine,
    containerd,
    connect: await connectAs('kubelet-client'),
    clusterDns,
    serving,
  }
  await startKubelet(kubeletOptions(node), closing)
  followAddresses({ ...node, networkReady: flannel.ready }, closing)
  const asProxy = {
    ...options,
    nodeName: name,
    addresses,
    families: familiesOf(podCidr),
    connect: await connectAs('kube-proxy'),
  }
  await startMachineProxy(asProxy, closing)
}

const pki = ({ dataDir }: Pick<NodeProcessOptions, 'dataDir'>, file: string): string => join(dataDir, PKI_FOLDER, file)

/** Rereads certificates after renewals. */
async function connect(
  options: NodeProcessOptions,
  { server }: NodeTask,
  who: string,
  closing: AsyncDisposableStack,
): Promise<NodeConnect> {
  const { log } = options
  const connection = await openConnection(
    {
      cluster: { server, 'certificate-authority': pki(options, 'ca.crt') },
      user: { 'client-certificate': pki(options, `${who}.crt`), 'client-key': pki(options, `${who}.key`) },
      namespace: '',
    },
    { ...options, onError: (error) => log.error(error, 'Failed to load new certificates') },
  )
  closing.defer(() => connection.close())
  return connection
}

async function servingOf(
  options: NodeProcessOptions,
  address: string,
  closing: AsyncDisposableStack,
): Promise<KubeletOptions['serving']> {
  const files = createLiveFiles(options)
  closing.defer(() => files.close())
  const pair = await files.open([pki(options, 'kubelet.crt'), pki(options, 'kubelet.key')], readPair)
  const clientAuthority = await options.readFile(pki(options, 'ca.crt'))
  return {
    ...pair(),
    address,
    port: PORT,
    clientAuthority,
    allowsAnonymous: false,
    follow: (changed) => files.start(() => changed({ ...pair(), clientAuthority })),
  }
}

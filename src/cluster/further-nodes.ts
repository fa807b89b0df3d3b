/**
 * Further nodes on the machine of a cluster: each is a process of its own in a network namespace of its own, with its own
 * containerd, and knows nothing but where the API server is and who it is itself.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'

import type { Surroundings } from '#control-plane/site.ts'
import { endProcesses, type ProcessEntry, processes } from '#kubelet/containerd/process-table.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { keepProcess } from '#lib/kept-process.ts'
import { startRounds } from '#lib/rounds.ts'
import type { Authority, IssuePlan } from '#lib/x509/authority.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { FLANNEL_USER } from './machine-flannel.ts'
import { ensureNamespace, nodePlace, type NamespaceWish, type NodePlace } from './node-namespace.ts'
import { nodeAddresses } from './runtime-file.ts'

/** What the process of a node is told, in a file of its data directory. */
export interface NodeTask {
  readonly name: string
  /** Of the node, in each family. */
  readonly addresses: readonly string[]
  readonly nodeCidr: string
  /** URL of the API server. */
  readonly server: string
  readonly podCidr: string
  readonly backend: FlannelBackend
  readonly clusterDns: readonly string[]
}

export const TASK_FILE = 'node.json'
export const PKI_FOLDER = 'pki'
/** The program that is a node's process. */
export const NODE_PROGRAM = 'up-node'

export interface FurtherNodesPlan extends Pick<Surroundings, 'clock' | 'random' | 'log'>, NamespaceWish {
  /** The cluster's. */
  readonly dataDir: string
  /** How many beside the machine itself. */
  readonly many: number
  readonly authority: Authority
  /** The program that we are. */
  readonly program: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly task: Pick<NodeTask, 'server' | 'podCidr' | 'backend' | 'clusterDns'>
}

/** A year is what certificates are good for. */
const RENEW_MS = 7 * 24 * 3_600_000
const MEND_MS = 10_000
/** Its containers have a grace of their own. */
const STOP_MS = 60_000

/** Resolves to where they are when their processes run. They end, and their containers with them, before what is on `closing` already. */
export async function startFurtherNodes(
  plan: FurtherNodesPlan,
  closing: AsyncDisposableStack,
): Promise<readonly NodePlace[]> {
  const { clock, log } = plan
  const nodes = Array.from({ length: plan.many }, (_, at) => nodePlace(plan.dataDir, at + 2))
  for (const node of nodes) await prepare(plan, node)
  const renewed = async (): Promise<void> => {
    for (const node of nodes) await issueAll(plan, node)
  }
  const failed = (text: string) => (error: unknown) => log.error(error, text)
  const renewing = startRounds(
    { clock, periodMs: RENEW_MS, onError: failed('Certificates of nodes stay old') },
    renewed,
  )
  closing.defer(() => renewing.stop())
  const mended = async (): Promise<void> => {
    for (const node of nodes) await ensureNamespace(node, plan)
  }
  const mending = startRounds({ clock, periodMs: MEND_MS, onError: failed('Links of nodes are not mended') }, mended)
  closing.defer(() => mending.stop())
  // All end at once: each lets its containers finish.
  const ending = nodes.map((node) => keepNode(plan, node))
  closing.defer(async () => void (await Promise.all((await Promise.all(ending)).map((stack) => stack.disposeAsync()))))
  await Promise.all(ending)
  return nodes
}

async function prepare(plan: FurtherNodesPlan, node: NodePlace): Promise<void> {
  await mkdir(join(node.dataDir, PKI_FOLDER), { recursive: true, mode: 0o700 })
  await ensureNamespace(node, plan)
  await issueAll(plan, node)
  const { name, dataDir, number } = node
  const task: NodeTask = {
    ...plan.task,
    name,
    nodeCidr: plan.nodeCidr,
    addresses: nodeAddresses(plan.nodeCidr, number),
  }
  await writeFileAtomically(join(dataDir, TASK_FILE), `${JSON.stringify(task, undefined, 2)}\n`, { mode: 0o600 })
}

/** Who the parts of a node are, by the names of their files. */
function identities({ name }: NodePlace, ips: readonly string[]): Readonly<Record<string, IssuePlan>> {
  const user = `system:node:${name}`
  return {
    'kubelet-client': { commonName: user, organizations: ['system:nodes'], purpose: 'client' },
    kubelet: { commonName: user, names: { dns: [name], ips }, purpose: 'server' },
    'kube-proxy': { commonName: 'system:kube-proxy', purpose: 'client' },
    flannel: { commonName: FLANNEL_USER.name, purpose: 'client' },
  }
}

/** The key first: see who reads them together. */
async function issueAll({ authority, nodeCidr }: FurtherNodesPlan, node: NodePlace): Promise<void> {
  const folder = join(node.dataDir, PKI_FOLDER)
  const mode = { mode: 0o600 }
  await writeFileAtomically(join(folder, 'ca.crt'), authority.certificatePem, mode)
  for (const [name, plan] of Object.entries(identities(node, nodeAddresses(nodeCidr, node.number)))) {
    const { certificatePem, keyPem } = authority.issue(plan)
    await writeFileAtomically(join(folder, `${name}.key`), keyPem, mode)
    await writeFileAtomically(join(folder, `${name}.crt`), certificatePem, mode)
  }
}

/** One that outlived us when we were killed is ended first, as only a child can be watched. */
async function keepNode(plan: FurtherNodesPlan, node: NodePlace): Promise<AsyncDisposableStack> {
  const own = new AsyncDisposableStack()
  await endNodeProcess(node, plan.clock)
  await keepProcess({ ...plan, name: `Node ${node.name}`, stopMs: STOP_MS, spawn: () => spawnNode(plan, node) }, own)
  return own
}

async function spawnNode({ program, env }: FurtherNodesPlan, { within, dataDir }: NodePlace): Promise<ChildProcess> {
  await using log = await open(join(dataDir, 'node.log'), 'a', 0o600)
  const [first, ...args] = [...within, program, NODE_PROGRAM, '--data-dir', dataDir]
  // It reads nothing from the pipe but that we have gone.
  return spawn(first, args, { cwd: '/', env, detached: true, stdio: ['pipe', log.fd, log.fd] })
}

/** Whoever runs as this node. */
export async function endNodeProcess({ dataDir }: NodePlace, clock: Surroundings['clock']): Promise<void> {
  const isIt = ({ args }: ProcessEntry): boolean => {
    const at = args.indexOf(NODE_PROGRAM)
    return at >= 0 && args[at + 1] === '--data-dir' && args[at + 2] === dataDir
  }
  await endProcesses(
    (await processes()).filter(isIt).map(({ pid }) => pid),
    clock,
    STOP_MS,
  )
}

/**
 * Extra nodes on the cluster's machine. Each is a process with its own network namespace and containerd; it only knows
 * the API server's address and its own identity.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'

import { endProcesses, type ProcessEntry, processes } from '#containerd/process-table.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { runPeriodically } from '#lib/periodic.ts'
import { keepProcess } from '#lib/process/kept-process.ts'
import type { Authority, IssuePlan } from '#lib/x509/authority.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { nodeAddresses } from '../runtime-file.ts'
import { FLANNEL_USER } from './machine-flannel.ts'
import { ensureNamespace, extraNode, type ExtraNode, type NamespaceOptions } from './node-namespace.ts'

/** The settings of a node's process, in a file of its data directory. */
export interface NodeTask {
  readonly name: string
  /** One of each family. */
  readonly addresses: readonly string[]
  readonly nodeCidr: string
  /** The URL of the API server. */
  readonly server: string
  readonly podCidr: string
  readonly backend: FlannelBackend
  readonly clusterDns: readonly string[]
}

export const TASK_FILE = 'node.json'
export const PKI_FOLDER = 'pki'
/** The command of a node's process. */
export const NODE_PROGRAM = 'up-node'

export interface ExtraNodesPlan extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log'>, NamespaceOptions {
  /** The cluster's directory. */
  readonly dataDir: string
  /** The number of nodes beside the machine. */
  readonly many: number
  readonly authority: Authority
  /** The path of this program. */
  readonly program: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly task: Pick<NodeTask, 'server' | 'podCidr' | 'backend' | 'clusterDns'>
}

/** Certificates are valid for a year. */
const RENEW_MS = 7 * 24 * 3_600_000
const MEND_MS = 10_000
/** Its containers have a grace period. */
const STOP_MS = 60_000

/**
 * Resolves to the nodes when their processes run. They and their containers stop before everything already on
 * `closing`.
 */
export async function startExtraNodes(
  plan: ExtraNodesPlan,
  closing: AsyncDisposableStack,
): Promise<readonly ExtraNode[]> {
  const { clock, log } = plan
  const nodes = Array.from({ length: plan.many }, (_, at) => extraNode(plan.dataDir, at + 2))
  for (const node of nodes) await prepare(plan, node)
  const renewed = async (): Promise<void> => {
    for (const node of nodes) await issueAll(plan, node)
  }
  const failed = (text: string) => (error: unknown) => log.error(error, text)
  const renewing = runPeriodically(
    { clock, periodMs: RENEW_MS, onError: failed('Certificates of nodes stay old') },
    renewed,
  )
  closing.defer(() => renewing.stop())
  const mended = async (): Promise<void> => {
    for (const node of nodes) await ensureNamespace(node, plan)
  }
  const mending = runPeriodically(
    { clock, periodMs: MEND_MS, onError: failed('Links of nodes are not mended') },
    mended,
  )
  closing.defer(() => mending.stop())
  // Concurrently, because each waits for its containers.
  const ending = nodes.map((node) => keepNode(plan, node))
  closing.defer(async () => void (await Promise.all((await Promise.all(ending)).map((stack) => stack.disposeAsync()))))
  await Promise.all(ending)
  return nodes
}

async function prepare(plan: ExtraNodesPlan, node: ExtraNode): Promise<void> {
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

/** The identities of a node's components, by file name. */
function identities({ name }: ExtraNode, ips: readonly string[]): Readonly<Record<string, IssuePlan>> {
  const user = `system:node:${name}`
  return {
    'kubelet-client': { commonName: user, organizations: ['system:nodes'], purpose: 'client' },
    kubelet: { commonName: user, names: { dns: [name], ips }, purpose: 'server' },
    'kube-proxy': { commonName: 'system:kube-proxy', purpose: 'client' },
    flannel: { commonName: FLANNEL_USER.name, purpose: 'client' },
  }
}

/** Writes the key first, because readers read both files together. */
async function issueAll({ authority, nodeCidr }: ExtraNodesPlan, node: ExtraNode): Promise<void> {
  const folder = join(node.dataDir, PKI_FOLDER)
  const mode = { mode: 0o600 }
  await writeFileAtomically(join(folder, 'ca.crt'), authority.certificatePem, mode)
  for (const [name, plan] of Object.entries(identities(node, nodeAddresses(nodeCidr, node.number)))) {
    const { certificatePem, keyPem } = authority.issue(plan)
    await writeFileAtomically(join(folder, `${name}.key`), keyPem, mode)
    await writeFileAtomically(join(folder, `${name}.crt`), certificatePem, mode)
  }
}

/** First stops a process that survived our crash: only a child can be supervised. */
async function keepNode(plan: ExtraNodesPlan, node: ExtraNode): Promise<AsyncDisposableStack> {
  const own = new AsyncDisposableStack()
  await endNodeProcess(node, plan.clock)
  await keepProcess({ ...plan, name: `Node ${node.name}`, stopMs: STOP_MS, spawn: () => spawnNode(plan, node) }, own)
  return own
}

async function spawnNode({ program, env }: ExtraNodesPlan, { within, dataDir }: ExtraNode): Promise<ChildProcess> {
  await using log = await open(join(dataDir, 'node.log'), 'a', 0o600)
  const [first, ...args] = [...within, program, NODE_PROGRAM, '--data-dir', dataDir]
  // The pipe only signals our exit.
  return spawn(first, args, { cwd: '/', env, detached: true, stdio: ['pipe', log.fd, log.fd] })
}

/** Stops the process of this node. */
export async function endNodeProcess({ dataDir }: ExtraNode, clock: EnvironmentOptions['clock']): Promise<void> {
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

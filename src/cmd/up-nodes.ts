/** What the nodes of `hyperkube up` are: asked for, or as they were, or as this machine can. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { claimRanges } from '#cluster/range-claims.ts'
import { chooseRuntime, containerFault, readAbility } from '#cluster/runtime-choice.ts'
import { nodeAddress, type Ranges, readRuntimeFile, type RuntimeFile, writeRuntimeFile } from '#cluster/runtime-file.ts'
import { podCidrFor, SERVICE_CIDR } from '#cluster/settings.ts'
import type { Clock } from '#lib/clock.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

export interface Chosen extends RuntimeFile {
  readonly serviceCidr: string
  readonly nodes: number
  /** Why pods are not containers, when nobody said that they should not be. */
  readonly why?: string
}

interface Asked {
  readonly flags: { readonly runtime: 'auto' | 'containerd' | 'simulated'; readonly nodes: number }
  readonly env: ProgramContext['env']
  readonly changed: ReadonlySet<string>
  readonly clock: Clock
}

/** Now and whenever this cluster is started again. Throws ProgramError when it cannot be. */
export async function chooseNodes({ flags, env, changed, clock }: Asked, dataDir: string): Promise<Chosen> {
  const { runtime: asked } = flags
  const file = await readRuntimeFile(dataDir)
  // A cluster that is started again goes on as it was, unless something else is asked for.
  const nodes = changed.has('nodes') ? flags.nodes : (file?.nodes ?? flags.nodes)
  // Clusters from before there were containers, and snapshots, say nothing.
  const isOld = ['store.db', 'pki'].some((name) => existsSync(join(dataDir, name)))
  const before = file?.runtime ?? (isOld ? 'simulated' : undefined)
  const fault = asked === 'simulated' ? undefined : containerFault(await readAbility(env))
  const { runtime, why, fault: refusal } = chooseRuntime({ asked, nodes, before, fault })
  if (refusal !== undefined)
    throw new ProgramError(`${refusal}; with --runtime simulated pods live and die without containers`)
  const ranges =
    runtime === 'simulated'
      ? { podCidr: podCidrFor(nodes), serviceCidr: file?.serviceCidr ?? SERVICE_CIDR }
      : await rangesFor(file, isOld, () => claimRanges(dataDir, clock.now()))
  const written = { ...ranges, runtime, ...(runtime === 'containerd' && { nodes }) }
  await writeRuntimeFile(dataDir, written)
  return { ...written, nodes, ...(why !== undefined && { why }) }
}

/** What a cluster has it keeps: services and pods have their addresses of it. */
async function rangesFor(
  file: RuntimeFile | undefined,
  isOld: boolean,
  claim: () => Promise<Ranges>,
): Promise<RuntimeFile & Ranges> {
  const { nodeCidr, serviceCidr = SERVICE_CIDR } = file ?? {}
  if (file !== undefined && nodeCidr !== undefined) return { ...file, nodeCidr, serviceCidr }
  return { runtime: 'containerd', ...(await claim()), ...(isOld && { serviceCidr: SERVICE_CIDR }), ...file }
}

/** Where pods and further nodes reach the API server; none without containers. */
export function innerAddress({ runtime, nodeCidr }: Chosen): readonly string[] {
  return runtime === 'containerd' && nodeCidr !== undefined ? [nodeAddress(nodeCidr)] : []
}

export function nodesText({ nodes: many, runtime, why }: Chosen): string {
  if (many === 0) return 'none'
  const others = many === 1 ? '' : `, and ${many - 1} beside it in network namespaces`
  if (runtime === 'containerd') return `this machine, with a containerd of its own${others}`
  return `${many} simulated: pods run without containers${why === undefined ? '' : ` (${why})`}`
}

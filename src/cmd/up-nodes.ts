/** What the nodes of `hyperkube up` are: asked for, or as they were, or as this machine can. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { claimRanges } from '#cluster/range-claims.ts'
import { chooseRuntime, containerFault, readAbility } from '#cluster/runtime-choice.ts'
import { type Ranges, readRuntimeFile, type RuntimeFile, writeRuntimeFile } from '#cluster/runtime-file.ts'
import { podCidrFor, SERVICE_CIDR } from '#cluster/settings.ts'
import { nthAddress, parseCidr } from '#lib/cidr.ts'
import type { Clock } from '#lib/clock.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

export interface Chosen extends RuntimeFile {
  readonly serviceCidr: string
  /** Why pods are not containers, when nobody said that they should not be. */
  readonly why?: string
}

interface Asked {
  readonly flags: { readonly runtime: 'auto' | 'containerd' | 'simulated'; readonly nodes: number }
  readonly env: ProgramContext['env']
  readonly clock: Clock
}

/** Now and whenever this cluster is started again. Throws ProgramError when it cannot be. */
export async function chooseNodes({ flags, env, clock }: Asked, dataDir: string): Promise<Chosen> {
  const { nodes, runtime: asked } = flags
  if (asked === 'containerd' && nodes > 1)
    throw new ProgramError('With --runtime containerd this machine is the only node; --runtime simulated has many')
  const file = await readRuntimeFile(dataDir)
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
  const written = { ...ranges, runtime }
  await writeRuntimeFile(dataDir, written)
  return { ...written, ...(why !== undefined && { why }) }
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
  const block = runtime === 'containerd' && nodeCidr !== undefined ? parseCidr(nodeCidr) : undefined
  return block === undefined ? [] : [nthAddress(block, 1)]
}

export function nodesText(many: number, { runtime, why }: Chosen): string {
  if (many === 0) return 'none'
  if (runtime === 'containerd') return 'this machine, with a containerd of its own'
  return `${many} simulated: pods run without containers${why === undefined ? '' : ` (${why})`}`
}

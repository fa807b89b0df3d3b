/** The shared part of the `rollout` commands: flags, selection and supported kinds. */
import { goQuote } from '#lib/go/text.ts'

import type { Selection } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import type { Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { fileFlags, SELECTOR_FLAG } from '../flag-sets.ts'

export const ROLLOUT_FLAGS: ReturnType<typeof rolloutFlags> = rolloutFlags()

function rolloutFlags(): ReturnType<typeof fileFlags> & typeof SELECTOR_FLAG {
  return { ...fileFlags('identifying the resource to get from a server.'), ...SELECTOR_FLAG }
}

interface RolloutInvocation extends Pick<Invocation, 'args' | 'session' | 'cwd' | 'stdin'> {
  readonly flags: {
    readonly filename: readonly string[]
    readonly kustomize: string
    readonly recursive: boolean
    readonly selector: string
  }
}

/** Throws KubectlError without resources, or for an invalid revision. */
export function checkSelection({ args, flags }: RolloutInvocation, revision = 0): void {
  if (args.length === 0 && flags.filename.length === 0 && flags.kustomize === '') {
    throw new KubectlError('required resource not specified')
  }
  if (revision < 0) throw new KubectlError(`revision must be a positive integer: ${revision}`)
}

/** The selected objects. Throws KubectlError. */
export function selectWorkloads(invocation: RolloutInvocation): Promise<Selection> {
  const { args, flags } = invocation
  return selectFor(invocation, { labelSelector: flags.selector, args, allowEmptySelector: true, latest: true })
}

/** `ReplicaSet.apps`. */
export function groupKind({ kind }: Info): string {
  return kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
}

export const ROLLED: ReadonlySet<string> = new Set(['Deployment.apps', 'DaemonSet.apps', 'StatefulSet.apps'])

const KNOWN: ReadonlySet<string> = new Set([
  'Pod',
  'ReplicationController',
  'ReplicaSet.apps',
  'Job.batch',
  'CronJob.batch',
  ...ROLLED,
])

/** Throws KubectlError for kinds without revisions; `what` names upstream's helper, such as `history viewer`. */
export function requireRevisions(info: Info, what: 'history viewer' | 'rollbacker'): void {
  const kind = groupKind(info)
  if (ROLLED.has(kind)) return
  throw new KubectlError(
    KNOWN.has(kind)
      ? `no ${what} has been implemented for ${goQuote(kind)}`
      : `error retrieving ${what.split(' ')[0]} for ${goQuote(kind)}, no visitor method exists for {${info.kind.group} ${info.kind.kind}}`,
  )
}

export async function reportNoneFound({ session, stderr }: Pick<Invocation, 'session' | 'stderr'>): Promise<void> {
  stderr.write(`No resources found in ${(await session.namespace()).namespace} namespace.\n`)
}

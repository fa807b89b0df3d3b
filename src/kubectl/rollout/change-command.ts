/** kubectl rollout pause, resume and restart: patch the selected workloads. */
import type { Deployment } from '#apis/apps/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'

import type { Info } from '../builder/select-options.ts'
import { type Choices, ROLLED_TYPES } from '../choices.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { localTimestamp } from '../describe/times.ts'
import { asError, failuresOf, KubectlError } from '../errors.ts'
import { fieldManagerFlag } from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import type { AnyObject } from '../session/rest.ts'
import type { RevisionedWorkload } from './history.ts'
import { checkSelection, groupKind, selectWorkloads, ROLLED, ROLLOUT_FLAGS, reportNoneFound } from './selection.ts'

const FLAGS = { ...printFlags(), ...ROLLOUT_FLAGS, ...fieldManagerFlag('kubectl-rollout') }

interface Change {
  readonly name: string
  readonly done: string
  readonly long: string
  readonly examples: string
  readonly completes: Choices
  /** The changed object; throws an error if the change is not possible. */
  patch(object: RevisionedWorkload, kind: string, nowMs: number): object
}

const PAUSE: Change = {
  name: 'pause',
  done: 'paused',
  long: 'Pause a deployment. Changes are not rolled out until it is resumed.',
  examples: '# Pause a deployment\nkubectl rollout pause deployment/nginx',
  completes: { resources: ['deployment'] },
  patch(object, kind) {
    if (kind !== 'Deployment.apps') throw new KubectlError('pausing is not supported')
    if ((object as Deployment).spec.paused === true) throw new KubectlError('is already paused')
    return { spec: { paused: true } }
  },
}

const RESUME: Change = {
  name: 'resume',
  done: 'resumed',
  long: 'Resume a paused deployment.',
  examples: '# Resume a deployment\nkubectl rollout resume deployment/nginx',
  completes: { resources: ['deployment'] },
  patch(object, kind) {
    if (kind !== 'Deployment.apps') throw new KubectlError('resuming is not supported')
    if ((object as Deployment).spec.paused !== true) throw new KubectlError('is not paused')
    return { spec: { paused: null } }
  },
}

const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt'

const RESTART: Change = {
  name: 'restart',
  done: 'restarted',
  long: 'Restart all pods of a workload with a rollout.',
  examples: '# Restart a deployment\nkubectl rollout restart deployment/nginx',
  completes: { resources: ROLLED_TYPES },
  patch(object, kind, nowMs) {
    if (!ROLLED.has(kind)) throw new KubectlError('restarting is not supported')
    if (kind === 'Deployment.apps' && (object as Deployment).spec.paused === true) {
      throw new KubectlError("can't restart paused deployment (run rollout resume first)")
    }
    const restartedAt = localTimestamp(nowMs)
    if (object.spec.template?.metadata?.annotations?.[RESTARTED_AT] === restartedAt) return {}
    return { spec: { template: { metadata: { annotations: { [RESTARTED_AT]: restartedAt } } } } }
  },
}

function changeCommand(change: Change): Command {
  return defineCommand({
    name: change.name,
    use: 'RESOURCE [options]',
    long: change.long,
    examples: change.examples,
    flags: FLAGS,
    completes: change.completes,
    async run(invocation) {
      checkSelection(invocation)
      const { infos, error } = await (await selectWorkloads(invocation)).infos()
      if (infos.length === 0 && error === undefined) return reportNoneFound(invocation)
      const errors = error === undefined ? [] : [error]
      for (const info of infos) {
        await applyChange(invocation, info, change).catch((failed: unknown) => errors.push(asError(failed)))
      }
      const failed = failuresOf(errors)
      if (failed !== undefined) throw failed
      return undefined
    },
  })
}

export const rolloutPause: Command = changeCommand(PAUSE)
export const rolloutResume: Command = changeCommand(RESUME)
export const rolloutRestart: Command = changeCommand(RESTART)

async function applyChange(invocation: Invocation<typeof FLAGS>, info: Info, change: Change): Promise<void> {
  const { session, stdout, clock, flags } = invocation
  const patch = patchFor(info, change, clock.now())
  if (Object.keys(patch).length === 0) {
    throw new KubectlError(
      `failed to create patch for ${info.name}: if restart has already been triggered within the past second, please wait before attempting to trigger another`,
    )
  }
  const rest = await session.rest()
  const sent = rest.patch(info, 'strategic', patch, { fieldManager: flags['field-manager'] })
  const object: AnyObject = await sent.catch((cause: unknown) => {
    throw new KubectlError(`failed to patch: ${asError(cause).message}`, { cause })
  })
  const printer = await printerOf(invocation, { operation: change.done, keepOrder: true })
  printer.print(object as unknown as JsonObject, stdout)
}

function patchFor(info: Info, change: Change, nowMs: number): object {
  try {
    return change.patch(info.object as unknown as RevisionedWorkload, groupKind(info), nowMs)
  } catch (cause) {
    const { kind, name } = info
    const resource = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
    throw new KubectlError(`error: ${resource} ${goQuote(name)} ${asError(cause).message}`, { cause })
  }
}

/** kubectl scale: sets the number of replicas of a workload. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { isConflict } from '#meta/status.ts'

import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { SCALED_TYPES } from '../choices.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { DRY_RUN_FLAG, type DryRun, dryRunOf, dryRunQuery, fileFlags, SELECTOR_FLAG, withDryRun } from '../flag-sets.ts'
import { pollUntil } from '../polling.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recordPatch } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to set a new size'),
  ...DRY_RUN_FLAG,
  ...SELECTOR_FLAG,
  ...RECORD_FLAG,
  all: flag(bool, false, 'Select all objects of the given types in the namespace.'),
  'resource-version': flag(string, '', 'Scale only if the object has this resource version.'),
  'current-replicas': flag(int, -1, 'Scale only if the object has this number of replicas. -1 matches any number.'),
  replicas: flag(int, 0, 'New number of replicas. Required.', { required: true }),
  timeout: flag(duration, 0, 'Time to wait for the replicas. Zero means not to wait.'),
}

type ScaleInvocation = Invocation<typeof FLAGS>

export const scale: Command = defineCommand({
  name: 'scale',
  use: '[--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME) [options]',
  long: 'Set the number of replicas of a deployment, replica set, replication controller or stateful set.',
  examples: `# Scale a replica set to 3
kubectl scale --replicas=3 rs/foo

# Scale a deployment only if it has 2 replicas now
kubectl scale --current-replicas=2 --replicas=3 deployment/mysql`,
  flags: FLAGS,
  completes: { resources: SCALED_TYPES },
  async run(invocation) {
    const { args, flags, session, stdout } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const printer = await printerOf(invocation, { operation: withDryRun('scaled', dryRun) })
    // An unknown context is reported before everything else.
    await session.namespace()
    checkFlags(flags)
    const selection = await selectFor(invocation, {
      args,
      allowEmptySelector: flags.all,
      labelSelector: flags.selector,
    })
    const { infos, error } = await selection.infos()
    if (flags['resource-version'] !== '' && infos.length > 1) {
      throw new KubectlError('cannot use --resource-version with multiple resources')
    }
    if (infos.length === 0) throw error ?? new KubectlError('no objects passed to scale')
    for (const info of infos) {
      const object = info.object as AnyObject & { spec?: object }
      if (dryRun !== 'client') {
        await scaleOne(invocation, info, dryRun)
        await recordScaling(invocation, info, object)
      }
      printer.print({ ...object, spec: { ...object.spec, replicas: flags.replicas } } as unknown as JsonObject, stdout)
    }
    if (error !== undefined) throw error
  },
})

/** The object is already scaled, so a failure to write the annotation is ignored. */
async function recordScaling(invocation: ScaleInvocation, info: Info, object: AnyObject): Promise<void> {
  const patch = recordPatch(invocation, object)
  if (patch === undefined) return
  const rest = await invocation.session.rest()
  await rest.patch(info, 'merge', patch, {}).catch(() => undefined)
}

function checkFlags(flags: ScaleInvocation['flags']): void {
  if (flags.replicas < 0) {
    throw new KubectlError('The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0')
  }
  if (flags['current-replicas'] < -1) {
    throw new KubectlError('The --current-replicas must specify an integer of -1 or greater')
  }
}

interface Scale extends AnyObject {
  spec?: { replicas?: number }
  status?: { replicas?: number }
}

/** Retries after a conflict. */
async function scaleOne(invocation: ScaleInvocation, info: Info, dryRun: DryRun): Promise<void> {
  const { flags, session } = invocation
  const rest = await session.rest()
  const target = { ...info, subresource: 'scale' }
  const hasConditions = flags['current-replicas'] !== -1 || flags['resource-version'] !== ''
  if (!hasConditions) {
    await rest.patch(target, 'merge', { spec: { replicas: flags.replicas } }, dryRunQuery(dryRun))
  } else {
    await pollUntil(invocation, SCALE_TRIES_MS, async () => {
      const current = (await rest.get(target)) as Scale
      requireConditions(current, flags)
      const next = { ...current, spec: { ...current.spec, replicas: flags.replicas } }
      return rest.replace(target, next, dryRunQuery(dryRun)).then(
        () => true,
        (error: unknown) => {
          if (isConflict(error) && flags['resource-version'] === '') return false
          throw error
        },
      )
    })
  }
  if (flags.timeout !== 0 && dryRun === 'none') {
    const isThere = async (): Promise<boolean> => {
      const { spec, status } = (await rest.get(target)) as Scale
      return spec?.replicas === flags.replicas && (status?.replicas ?? 0) === flags.replicas
    }
    if (!(await pollUntil(invocation, flags.timeout, isThere))) {
      throw new KubectlError('timed out waiting for the condition')
    }
  }
}

/** Upstream's time limit for retries after conflicts. */
const SCALE_TRIES_MS = 5 * 60_000

function requireConditions({ spec = {}, metadata }: Scale, flags: ScaleInvocation['flags']): void {
  const { 'current-replicas': size, 'resource-version': version } = flags
  const { replicas = 0 } = spec
  if (size !== -1 && replicas !== size) throw new KubectlError(`Expected replicas to be ${size}, was ${replicas}`)
  if (version !== '' && metadata.resourceVersion !== version) {
    throw new KubectlError(`Expected resource version to be ${version}, was ${metadata.resourceVersion ?? ''}`)
  }
}

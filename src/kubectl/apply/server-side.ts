/** Server-side apply: the server merges, and reports conflicts with other field managers. */
import type { ManagedFieldsEntry } from '#meta/object.ts'
import { isConflict, statusOf } from '#meta/status.ts'

import type { Info } from '../builder/select-options.ts'
import { asError, KubectlError } from '../errors.ts'
import { dryRunQuery } from '../flag-sets.ts'
import type { AnyObject, Rest } from '../session/rest.ts'
import type { ApplyResult, ApplyContext, ApplySettings } from './applying.ts'
import { LAST_APPLIED } from './last-applied.ts'
import { unionOf } from './managed-fields.ts'

const ADVICE = `Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the \`--force-conflicts\` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts`

export async function applyOnServer(context: ApplyContext, info: Info, settings: ApplySettings): Promise<ApplyResult> {
  const { flags, session } = context
  const rest = await session.rest()
  const query = {
    fieldManager: settings.manager,
    fieldValidation: settings.fieldValidation,
    force: flags['force-conflicts'] ? 'true' : 'false',
    ...dryRunQuery(settings.dryRun),
  }
  const target = { ...info, ...(flags.subresource !== '' && { subresource: flags.subresource }) }
  const applyIt = (): Promise<AnyObject> => rest.patch(target, 'apply', info.object, query)
  const object = await applyIt().catch((error: unknown) => {
    throw explained(error)
  })
  const migrated = await migrate(context, { ...info, object }, settings)
  return { object: migrated ? await reapplied(context, applyIt, object) : object, operation: 'serverside-applied' }
}

/** The object was applied, so failures from here on are only warnings. */
async function reapplied(
  { stderr }: ApplyContext,
  applyIt: () => Promise<AnyObject>,
  object: AnyObject,
): Promise<AnyObject> {
  return applyIt().catch((error: unknown) => {
    stderr.write(
      `Warning: failed to re-apply configuration after performing Server-Side Apply migration. ${LATER} Error: ${asError(error).message}\n`,
    )
    return object
  })
}

const LATER = 'This is non-fatal and will be retried next time you apply.'
const MAX_TRIES = 5

function explained(error: unknown): Error {
  const { message } = asError(error)
  if (statusOf(error)?.code === 415) {
    return new KubectlError(`Server-side apply not available on the server: (${message})`, { cause: error })
  }
  return isConflict(error) ? new KubectlError(`${message}\n${ADVICE}`, { cause: error }) : asError(error)
}

/**
 * Moves the fields of client-side apply to the manager that applies now, so that a later apply can remove them. Returns
 * true if there were any.
 */
async function migrate(
  { session, stderr }: ApplyContext,
  info: Info & { object: AnyObject },
  settings: ApplySettings,
): Promise<boolean> {
  const rest = await session.rest()
  let { object } = info
  try {
    if (settings.manager === 'kubectl') object = await keepAnnotation(rest, info, settings)
  } catch (error) {
    const what = `failed to migrate ${LAST_APPLIED} for Server-Side Apply`
    stderr.write(`Warning: ${what}. ${LATER} Error: ${asError(error).message}\n`)
    return false
  }
  const owners = (object.metadata.managedFields ?? []).filter(
    (entry) => entry.operation === 'Update' && ownsAnnotation(entry),
  )
  const names = new Set(owners.map((entry) => entry.manager))
  if (names.size === 0) return false
  for (let tries = 1; ; tries++) {
    try {
      await handOver(rest, { ...info, object }, names, settings)
      return true
    } catch (error) {
      if (!isConflict(error) || tries >= MAX_TRIES) {
        const what = 'server rejected managed fields migration to Server-Side Apply'
        stderr.write(`Warning: ${what}. ${LATER} Error: ${asError(error).message}\n`)
        return false
      }
      object = await rest.get(info)
    }
  }
}

async function handOver(
  rest: Rest,
  info: Info & { object: AnyObject },
  names: ReadonlySet<string | undefined>,
  { manager, dryRun }: ApplySettings,
): Promise<void> {
  const { managedFields = [], resourceVersion } = info.object.metadata
  const patch = [
    { op: 'replace', path: '/metadata/managedFields', value: unionOf(managedFields, names, manager) },
    { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
  ]
  await rest.patch(info, 'json', patch, { fieldManager: manager, ...dryRunQuery(dryRun) })
}

function ownsAnnotation({ fieldsV1 = {} }: ManagedFieldsEntry): boolean {
  const metadata = fieldsV1['f:metadata'] as { 'f:annotations'?: Record<string, unknown> } | undefined
  return Object.hasOwn(metadata?.['f:annotations'] ?? {}, `f:${LAST_APPLIED}`)
}

/** The annotation gets a separate field manager, so that no apply removes it by leaving it out. */
async function keepAnnotation(
  rest: Rest,
  info: Info & { object: AnyObject },
  { dryRun }: ApplySettings,
): Promise<AnyObject> {
  const { apiVersion, kind, metadata } = info.object
  const { name, namespace, annotations = {}, managedFields = [] } = metadata
  const isKept = managedFields.some((entry) => entry.operation === 'Apply' && ownsAnnotation(entry))
  if (isKept || !Object.hasOwn(annotations, LAST_APPLIED)) return info.object
  const only = { [LAST_APPLIED]: annotations[LAST_APPLIED] }
  const patch = { apiVersion, kind, metadata: { name, namespace, annotations: only } }
  return rest.patch(info, 'apply', patch, { fieldManager: 'kubectl-last-applied', ...dryRunQuery(dryRun) })
}

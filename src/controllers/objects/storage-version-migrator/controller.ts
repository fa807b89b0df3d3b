/**
 * Storage version migrator: rewrites every object of a resource, so that it is stored in the current version. One
 * migration of a resource at a time, the oldest first. Afterwards it removes old versions from a CRD's
 * `storedVersions`.
 */
import type { GroupResource } from '#apis/meta/v1.ts'
import { type StorageVersionMigration, StorageVersionMigrations } from '#apis/storagemigration/v1beta1.ts'
import type { ServedKind } from '#client/discovery.ts'
import { compareText } from '#lib/go/text.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { isConditionTrue, setCondition } from '#meta/conditions.ts'
import { objectKey } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import type { Cache } from '#reconcile/cache.ts'
import { related, rule } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { ServedKinds } from '../served-kinds.ts'
import { finishDefinition, markDefinition } from './definition.ts'
import { latestResourceVersion, Refusal, rewriteAll } from './rewriting.ts'

/** How long an unknown resource is retried: it may be new. */
const PATIENCE_MS = 60_000
const AGAIN_MS = 5000
const VERBS = ['update', 'patch', 'list']

const kindsOf = perRun(({ client }) => new ServedKinds(client))

export const storageVersionMigratorController: Controller = defineController({
  name: 'storage-version-migrator-controller',
  aliases: ['svm'],
  pace: { qps: 20, burst: 100 },
  gates: ['StorageVersionMigrator'],
  watches: [related(StorageVersionMigrations, sameResource)],
  rules: [
    rule('*', '*', 'create list patch'),
    rule('apiextensions.k8s.io', 'customresourcedefinitions', 'get'),
    rule('apiextensions.k8s.io', 'customresourcedefinitions/status', 'patch'),
    rule('storagemigration.k8s.io', 'storageversionmigrations/status', 'update'),
  ],

  async reconcile(name, context) {
    const migration = context.cache.get(StorageVersionMigrations, name)
    if (migration === undefined) return undefined
    if (isOver(migration)) return isRunning(migration) ? end(migration, context) : undefined
    if (!isRunning(migration)) return isNext(migration, context.cache) ? begin(migration, context) : undefined
    return (migration.status.resourceVersion ?? '') === ''
      ? recordTarget(migration, context)
      : migrate(migration, context)
  },
})

/** The end of a migration enqueues others of the resource. */
function sameResource({ spec }: StorageVersionMigration, cache: Cache): string[] {
  return [...cache.list(StorageVersionMigrations)]
    .filter((one) => isSame(one.spec.resource, spec.resource))
    .map(objectKey)
}

function isSame(a: GroupResource, b: GroupResource): boolean {
  return a.group === b.group && a.resource === b.resource
}

function isOver({ status }: StorageVersionMigration): boolean {
  return ['Succeeded', 'Failed'].some((type) => isConditionTrue(status.conditions, type))
}

function isRunning({ status }: StorageVersionMigration): boolean {
  return isConditionTrue(status.conditions, 'Running')
}

/** Whether this is the oldest waiting migration and none of the resource runs. */
function isNext(migration: StorageVersionMigration, cache: Cache): boolean {
  const all = [...cache.list(StorageVersionMigrations)].filter(
    (one) => isSame(one.spec.resource, migration.spec.resource) && !isOver(one),
  )
  const age = ({ metadata: { creationTimestamp = '', name = '' } }: StorageVersionMigration): string =>
    `${creationTimestamp} ${name}`
  const [first] = all.sort((a, b) => compareText(age(a), age(b)))
  return !all.some(isRunning) && first === migration
}

async function begin(migration: StorageVersionMigration, context: ControllerContext): Promise<undefined> {
  await markDefinition(migration, context)
  await writeCondition(
    migration,
    { type: 'Running', reason: 'MigrationRunning', message: 'The migration is running' },
    context,
  )
}

async function end(migration: StorageVersionMigration, context: ControllerContext): Promise<undefined> {
  await finishDefinition(migration, isConditionTrue(migration.status.conditions, 'Succeeded'), context)
  const conditions = (migration.status.conditions ?? []).map((condition) => ({ ...condition }))
  const { generation } = migration.metadata
  const text = {
    type: 'Running',
    status: 'False',
    reason: 'MigrationCompleted',
    message: 'Migration completed',
  } as const
  setCondition(
    conditions,
    { ...text, ...(generation !== undefined && { observedGeneration: generation }) },
    context.clock,
  )
  await write({ ...migration, status: { ...migration.status, conditions } }, context)
}

/** Records the current resource version: later writes are already in the right version. */
async function recordTarget(
  migration: StorageVersionMigration,
  context: ControllerContext,
): Promise<Requeue | undefined> {
  const kind = await served(migration, context)
  if (kind === undefined) return unknown(migration, 'resource does not exist in discovery', context)
  if (!VERBS.every((verb) => kind.verbs.includes(verb))) {
    const text = `${kind.group}/${kind.version}, Resource=${kind.plural}`
    return fail(migration, `resource "${text}" does not support discovery operations: [${VERBS.join(' ')}]`, context)
  }
  const resourceVersion = await latestResourceVersion(kind, context)
  await write({ ...migration, status: { ...migration.status, resourceVersion } }, context)
  return undefined
}

async function migrate(migration: StorageVersionMigration, context: ControllerContext): Promise<Requeue | undefined> {
  const kind = await served(migration, context)
  if (kind === undefined) return unknown(migration, `${UNHANDLED}unable to obtain GVR from discovery`, context)
  try {
    await rewriteAll(kind, migration.status.resourceVersion ?? '', context)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return fail(migration, UNHANDLED + error.message, context)
  }
  await writeCondition(
    migration,
    { type: 'Succeeded', reason: 'StorageVersionMigrationSucceeded', message: '' },
    context,
  )
  return undefined
}

const UNHANDLED = 'migration encountered unhandled error: '

async function served(
  { spec: { resource } }: StorageVersionMigration,
  context: ControllerContext,
): Promise<ServedKind | undefined> {
  const { group, resource: plural } = resource
  const found = await kindsOf(context).find((kinds) =>
    kinds.filter((one) => one.group === group && one.plural === plural),
  )
  return found.find(({ isPreferred }) => isPreferred) ?? found[0]
}

async function unknown(
  migration: StorageVersionMigration,
  message: string,
  context: ControllerContext,
): Promise<Requeue | undefined> {
  const { creationTimestamp } = migration.metadata
  const ageMs = context.clock.now() - epochMsOf(creationTimestamp ?? '1970-01-01T00:00:00Z')
  return ageMs < PATIENCE_MS ? { requeueAfterMs: AGAIN_MS } : fail(migration, message, context)
}

async function fail(
  migration: StorageVersionMigration,
  message: string,
  context: ControllerContext,
): Promise<undefined> {
  await writeCondition(migration, { type: 'Failed', reason: 'StorageVersionMigrationFailed', message }, context)
}

interface MigrationConditionText {
  readonly type: string
  readonly reason: string
  readonly message: string
}

async function writeCondition(
  migration: StorageVersionMigration,
  text: MigrationConditionText,
  context: ControllerContext,
): Promise<void> {
  const conditions = (migration.status.conditions ?? []).map((condition) => ({ ...condition }))
  setCondition(conditions, { ...text, status: 'True' }, context.clock)
  await write({ ...migration, status: { ...migration.status, conditions } }, context)
}

async function write(migration: StorageVersionMigration, { client, signal }: ControllerContext): Promise<void> {
  await client.updateStatus(StorageVersionMigrations, migration, { signal })
}

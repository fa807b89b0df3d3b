/** Updates the status of a CustomResourceDefinition after a migration. */
import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import type { StorageVersionMigration } from '#apis/storagemigration/v1beta1.ts'
import { findCondition } from '#meta/conditions.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ControllerContext } from '../../controller.ts'

const MANAGER = 'migration-runner-controller'

export async function markDefinition(migration: StorageVersionMigration, context: ControllerContext): Promise<void> {
  const definition = await definitionOf(migration, context)
  if (definition === undefined) return
  const message = `Migration ${migration.metadata.name} is running`
  await apply(definition, { status: 'True', reason: 'MigrationRunning', message }, context)
}

/** Sets the only stored version, unless the CRD changed since the start. */
export async function finishDefinition(
  migration: StorageVersionMigration,
  isSuccess: boolean,
  context: ControllerContext,
): Promise<void> {
  const definition = await definitionOf(migration, context)
  if (definition === undefined) return
  const marked = findCondition(definition.status.conditions as never, 'StorageMigrating') as
    | { observedGeneration?: number }
    | undefined
  const isSame = marked !== undefined && marked.observedGeneration === definition.metadata.generation
  const stored = definition.spec.versions.find(({ storage }) => storage)?.name
  const outcome = isSame
    ? 'and the stored versions have been updated'
    : 'but the stored versions have not been updated due to a generation mismatch'
  const condition = isSuccess
    ? { reason: 'MigrationSucceeded', message: `The migration has succeeded ${outcome}` }
    : { reason: 'MigrationFailed', message: 'The migration has failed' }
  const storedVersions = isSame && stored !== undefined ? [stored] : undefined
  await apply(definition, { status: 'False', ...condition, ...(storedVersions && { storedVersions }) }, context)
}

async function definitionOf(
  { spec: { resource } }: StorageVersionMigration,
  { client, signal }: ControllerContext,
): Promise<CustomResourceDefinition | undefined> {
  try {
    return await client.get(CustomResourceDefinitions, { name: `${resource.resource}.${resource.group}` }, { signal })
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

interface MigrationCondition {
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly storedVersions?: string[]
}

/** With a resourceVersion precondition, so that concurrent changes win. */
async function apply(
  { metadata: { name, resourceVersion, generation } }: CustomResourceDefinition,
  { storedVersions, ...fields }: MigrationCondition,
  { client, clock, signal }: ControllerContext,
): Promise<void> {
  const condition = {
    type: 'StorageMigrating',
    ...fields,
    lastTransitionTime: timeOf(clock.now()),
    ...(generation !== undefined && { observedGeneration: generation }),
  }
  const metadata = { ...(name !== undefined && { name }), ...(resourceVersion !== undefined && { resourceVersion }) }
  const status = { conditions: [condition], ...(storedVersions !== undefined && { storedVersions }) }
  const options = { fieldManager: MANAGER, force: true, subresource: 'status', signal }
  await client.apply(CustomResourceDefinitions, { metadata, status }, options)
}

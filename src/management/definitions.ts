/** Installs CustomResourceDefinitions in a cluster and waits until they are established. */
import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { until } from '#client/until.ts'
import type { Random } from '#lib/random.ts'
import { semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isConflict, isNotFound } from '#meta/status.ts'

const ESTABLISHED_MS = 30_000

/**
 * Creates the definitions, updates those of an older version, and waits until they are served. One that exists without the
 * labels of the wanted definition belongs to another program and stays unchanged.
 */
export async function installDefinitions(
  client: ApiClient,
  definitions: readonly CustomResourceDefinition[],
  { random, signal }: { readonly random: Random; readonly signal?: AbortSignal },
): Promise<void> {
  for (const definition of definitions) await ensureDefinition(client, definition)
  for (const definition of definitions) {
    const name = definition.metadata.name ?? ''
    const waiting = { client, kind: CustomResourceDefinitions, name, random, timeoutMs: ESTABLISHED_MS }
    await until({ ...waiting, ...(signal !== undefined && { signal }) }, isEstablished)
  }
}

const MAX_TRIES = 10

/** Another replica of a program may do the same at this moment. */
async function ensureDefinition(client: ApiClient, definition: CustomResourceDefinition): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await writeDefinition(client, definition)
    } catch (error) {
      if ((!isAlreadyExists(error) && !isConflict(error)) || tries === MAX_TRIES) throw error
    }
  }
}

async function writeDefinition(client: ApiClient, definition: CustomResourceDefinition): Promise<void> {
  const name = definition.metadata.name ?? ''
  try {
    const found = await client.get(CustomResourceDefinitions, { name })
    if (isForeign(found, definition) || semanticEqual(found.spec.versions, definition.spec.versions)) return
    await client.update(CustomResourceDefinitions, { ...found, spec: { ...found.spec, ...definition.spec } })
  } catch (error) {
    if (!isNotFound(error)) throw error
    await client.create(CustomResourceDefinitions, definition)
  }
}

function isForeign(found: CustomResourceDefinition, wanted: CustomResourceDefinition): boolean {
  return Object.entries(wanted.metadata.labels ?? {}).some(([key, value]) => found.metadata.labels?.[key] !== value)
}

function isEstablished(definition: CustomResourceDefinition | undefined): boolean {
  return (definition?.status?.conditions ?? []).some(({ type, status }) => type === 'Established' && status === 'True')
}

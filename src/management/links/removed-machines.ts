/**
 * Stores the credentials of removed machines as Secrets for at least 90 days. Their agents get 404 and clean up the
 * machine; agents with unknown credentials get 401 and do not.
 */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import type { Machine } from '../kinds/machine.ts'
import { MANAGEMENT_NAMESPACE, type ManagementObjects } from '../objects.ts'

const LABEL = 'management.hyperkube.io/removed-machine'
/** Agents that were away for longer get 401, and keep running. */
const KEPT_MS = 90 * 24 * 3_600_000
/** Of the hash, which has 64: names have at most 253. */
const DIGITS = 40

function secretName(hash: string): string {
  return `removed-machine-${hash.slice(0, DIGITS)}`
}

/** Called when a Machine was deleted, by the route or by others. */
export async function rememberRemoved(objects: ManagementObjects, { spec }: Machine): Promise<void> {
  const { client, clock } = objects
  await forgetOld(objects)
  const metadata = {
    namespace: MANAGEMENT_NAMESPACE,
    name: secretName(spec.credentialHash),
    labels: { [LABEL]: 'true' },
  }
  const stringData = {
    nodeName: spec.nodeName,
    hash: spec.credentialHash,
    removedAt: new Date(clock.now()).toISOString(),
  }
  try {
    await client.create(Secrets, { metadata, type: 'Opaque', stringData })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}

/** The name of the node of a removed machine. Undefined: no machine with this credential was removed. */
export async function removedNode(objects: ManagementObjects, hash: string): Promise<string | undefined> {
  const secret = await objects.secret(secretName(hash))
  if (secret === undefined || textIn(secret, 'hash') !== hash) return undefined
  return textIn(secret, 'nodeName')
}

async function forgetOld({ client, clock }: ManagementObjects): Promise<void> {
  const { items } = await client.list(Secrets, { namespace: MANAGEMENT_NAMESPACE, labelSelector: `${LABEL}=true` })
  for (const secret of items) {
    if (clock.now() - Date.parse(textIn(secret, 'removedAt')) <= KEPT_MS) continue
    const { name = '' } = secret.metadata
    await client.delete(Secrets, { namespace: MANAGEMENT_NAMESPACE, name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
}

function textIn({ data }: Secret, key: string): string {
  return Buffer.from(data?.[key] ?? '', 'base64').toString()
}

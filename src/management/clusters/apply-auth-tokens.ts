/**
 * Writes the API tokens and users of the authorized endpoint to a managed cluster, and deletes those that are no
 * longer valid.
 */
import { Namespaces, Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import {
  AUTH_DEFINITIONS,
  AUTH_LABEL,
  AUTH_NAMESPACE,
  ClusterAuthTokens,
  ClusterUserAttributes,
} from '#cluster-agent/api-auth/kinds.ts'
import type { Random } from '#lib/random.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import { installDefinitions } from '../definitions.ts'
import { applyKind } from './apply-kind.ts'
import { type AuthTokenObjects, NO_AUTH_TOKENS } from './auth-token-objects.ts'

/** Installs the definitions and the namespace first. */
export async function applyAuthTokens(
  client: ApiClient,
  wanted: AuthTokenObjects,
  tools: { readonly random: Random; readonly signal: AbortSignal },
): Promise<void> {
  await installDefinitions(client, AUTH_DEFINITIONS, tools)
  await ensureNamespace(client, tools.signal)
  await applyAll(client, wanted, tools.signal)
}

/**
 * Deletes all tokens and users. The definitions and the namespace stay, because others may use them, and because an
 * authenticator that reads no lists keeps the last state.
 */
export async function removeAuthTokens(client: ApiClient, signal: AbortSignal): Promise<void> {
  try {
    await applyAll(client, NO_AUTH_TOKENS, signal)
  } catch (error) {
    // The cluster never had an authorized endpoint.
    if (!isNotFound(error)) throw error
  }
}

/** Users first: the groups of a user who lost a role must not stay. */
async function applyAll(client: ApiClient, wanted: AuthTokenObjects, signal: AbortSignal): Promise<void> {
  const options = { client, label: AUTH_LABEL, namespace: AUTH_NAMESPACE, signal }
  await applyKind({ ...options, kind: ClusterUserAttributes }, wanted.users)
  await applyKind({ ...options, kind: ClusterAuthTokens }, wanted.tokens)
  await applyKind({ ...options, kind: Secrets }, wanted.secrets)
}

async function ensureNamespace(client: ApiClient, signal: AbortSignal): Promise<void> {
  try {
    await client.create(Namespaces, { metadata: { name: AUTH_NAMESPACE } }, { signal })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}

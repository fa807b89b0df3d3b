/**
 * Writes the ConfigMap `extension-apiserver-authentication`, with which aggregated servers authenticate requests.
 * Several API servers share it: each adds its values and removes only expired authorities.
 */
import { ConfigMaps } from '#apis/core/v1.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { semanticEqual } from '#meta/object.ts'

import type { Registry } from '../registry/registry.ts'

export interface AuthenticationConfig {
  /** PEM of `--client-ca-file`; empty for none. */
  readonly clientAuthorities: string
  /** `--requestheader-*`; absent without an authority for proxies. */
  readonly requestHeader?: {
    /** PEM. */
    readonly authorities: string
    readonly allowedNames: readonly string[]
    readonly usernameHeaders: readonly string[]
    readonly uidHeaders: readonly string[]
    readonly groupHeaders: readonly string[]
    readonly extraHeaderPrefixes: readonly string[]
  }
}

const NAMESPACE = 'kube-system'
const NAME = 'extension-apiserver-authentication'
const TRACKING = 'kube-apiserver-legacy-service-account-token-tracking'

/** The namespace must exist. */
export async function ensureAuthenticationConfig(registry: Registry, config: AuthenticationConfig): Promise<void> {
  const nowMs = registry.services.clock.now()
  const since = new Date(nowMs).toISOString().slice(0, 'YYYY-MM-DD'.length)
  const { writer } = registry
  await writer.ensure(ConfigMaps, { metadata: { name: TRACKING, namespace: NAMESPACE }, data: { since } })
  const data = mergeData({}, config, nowMs)
  if (await writer.ensure(ConfigMaps, { metadata: { name: NAME, namespace: NAMESPACE }, data })) return
  const planned = (there: Data): Data | undefined => {
    const next = mergeData(there, config, nowMs)
    return semanticEqual(there, next) ? undefined : next
  }
  const current = await registry.get(ConfigMaps, NAMESPACE, NAME)
  if (planned(current?.data ?? {}) === undefined) return
  await writer.update(ConfigMaps, { namespace: NAMESPACE, name: NAME }, (live) => ({
    ...live,
    data: { ...(planned(live.data ?? {}) ?? live.data) },
  }))
}

type Data = Readonly<Record<string, string>>

/** Merges existing values with this server's, without duplicates. Lists are JSON. */
export function mergeData(
  there: Data,
  { clientAuthorities, requestHeader }: AuthenticationConfig,
  nowMs: number,
): Record<string, string> {
  const data: Record<string, string> = { ...there }
  const authorities = (field: string, pem: string): void => {
    data[field] = mergeBundles(there[field] ?? '', pem, nowMs)
  }
  const list = (field: string, values: readonly string[]): void => {
    data[field] = JSON.stringify([...new Set([...readList(there[field]), ...values])])
  }
  if (clientAuthorities !== '') authorities('client-ca-file', clientAuthorities)
  if (requestHeader !== undefined) {
    authorities('requestheader-client-ca-file', requestHeader.authorities)
    list('requestheader-allowed-names', requestHeader.allowedNames)
    list('requestheader-username-headers', requestHeader.usernameHeaders)
    list('requestheader-uid-headers', requestHeader.uidHeaders)
    list('requestheader-group-headers', requestHeader.groupHeaders)
    list('requestheader-extra-headers-prefix', requestHeader.extraHeaderPrefixes)
  }
  return data
}

/** Unreadable values were not written by an API server and are removed. */
function readList(text: string | undefined): string[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
  } catch {
    return []
  }
}

function mergeBundles(there: string, ours: string, nowMs: number): string {
  const merged = new Map<string, string>()
  for (const { der, pem, notAfterMs } of [...readBundle(there), ...parseBundle(ours)]) {
    if (notAfterMs > nowMs) merged.set(der.toString('base64'), pem)
  }
  return [...merged.values()].join('')
}

function readBundle(pem: string): ReturnType<typeof parseBundle> {
  try {
    return pem === '' ? [] : parseBundle(pem)
  } catch {
    return []
  }
}

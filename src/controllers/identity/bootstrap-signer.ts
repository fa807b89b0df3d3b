/**
 * Bootstrap signer: signs the kubeconfig in `kube-public/cluster-info` with every bootstrap token for signing, so that
 * a joining node can verify the cluster.
 */
import { createHmac } from 'node:crypto'

import { ConfigMaps, type Secret, Secrets } from '#apis/core/v1.ts'
import { keyOf, semanticEqual } from '#meta/object.ts'
import { parseTime } from '#meta/time.ts'
import { related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, defineController } from '../controller.ts'

const WHERE = { namespace: 'kube-public', name: 'cluster-info' }
const KEY = keyOf(WHERE.namespace, WHERE.name)
const PREFIX = 'jws-kubeconfig-'
const TYPE = 'bootstrap.kubernetes.io/token'

export const bootstrapSignerController: Controller = defineController({
  name: 'bootstrap-signer-controller',
  aliases: ['bootstrapsigner'],
  account: 'bootstrap-signer',
  isOptional: true,
  workers: 1,
  watches: [
    related(ConfigMaps, ({ metadata: { namespace, name = '' } }) => (keyOf(namespace, name) === KEY ? [KEY] : [])),
    related(Secrets, (secret) => (isToken(secret) ? [KEY] : [])),
  ],
  rules: [rule('', 'secrets', 'get list watch'), rule('', 'configmaps', 'get list update watch'), EVENTS],

  async reconcile(_key, { cache, client, clock, signal }) {
    const info = cache.get(ConfigMaps, KEY)
    const kubeconfig = info?.data?.['kubeconfig']
    if (info === undefined || kubeconfig === undefined) return
    const tokens = cache.inNamespace(Secrets, 'kube-system').filter(isToken)
    const signatures = tokens.flatMap((secret) => signatureBy(secret, kubeconfig, clock.now()))
    const others = Object.entries(info.data ?? {}).filter(([name]) => !name.startsWith(PREFIX))
    const data = Object.fromEntries([...others, ...signatures])
    if (!semanticEqual(data, info.data)) await client.update(ConfigMaps, { ...info, data }, { signal })
  },
})

function isToken({ type, metadata }: Secret): boolean {
  return type === TYPE && metadata.namespace === 'kube-system'
}

function signatureBy({ metadata, data = {} }: Secret, kubeconfig: string, nowMs: number): [string, string][] {
  const text = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString()
  const [id, secret] = [text('token-id'), text('token-secret')]
  const isNamed = id !== '' && metadata.name === `bootstrap-token-${id}`
  if (!isNamed || secret === '' || text('usage-bootstrap-signing') !== 'true') return []
  return isOver(text('expiration'), nowMs) ? [] : [[PREFIX + id, detachedSignature(kubeconfig, id, secret)]]
}

function isOver(expiration: string, nowMs: number): boolean {
  if (expiration === '') return false
  try {
    return parseTime(expiration).seconds * 1000 <= nowMs
  } catch {
    return true
  }
}

/** A JWS with a detached payload: `head..signature`. */
export function detachedSignature(payload: string, id: string, secret: string): string {
  const head = Buffer.from(JSON.stringify({ alg: 'HS256', kid: id })).toString('base64url')
  const signed = `${head}.${Buffer.from(payload).toString('base64url')}`
  return `${head}..${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

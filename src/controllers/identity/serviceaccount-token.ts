/**
 * ServiceAccount token controller: fills Secrets of type `kubernetes.io/service-account-token`, and deletes them with
 * their account. These tokens never expire.
 */
import { type Secret, Secrets, type ServiceAccount, ServiceAccounts } from '#apis/core/v1.ts'
import { createSigner, type TokenSigner } from '#lib/jwt/token.ts'
import { parsePrivateKey } from '#lib/x509/key.ts'
import { keyOf, objectKey, splitKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import type { Cache } from '#reconcile/cache.ts'
import { related, rule, EVENTS } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../controller.ts'

const TYPE = 'kubernetes.io/service-account-token'
const ACCOUNT_NAME = 'kubernetes.io/service-account.name'
const ACCOUNT_UID = 'kubernetes.io/service-account.uid'
const ISSUER = 'kubernetes/serviceaccount'
/** The key prefix for an account with the name of a Secret that may be gone. */
const REFERENCE = 'reference:'

interface TokenTools {
  readonly signer: TokenSigner
  readonly bundle: string
}

const tokenToolsOf = perRun(async ({ settings, readFile, log }): Promise<TokenTools | undefined> => {
  const file = settings['service-account-private-key-file']
  const bundleFile = settings['root-ca-file']
  if (file === '') {
    log.info('Controller is disabled because there is no private key', {
      controller: 'serviceaccount-token-controller',
    })
    return undefined
  }
  const signer = createSigner(parsePrivateKey(await readFile(file)))
  return { signer, bundle: bundleFile === '' ? '' : await readFile(bundleFile) }
})

export const serviceAccountTokenController: Controller = defineController({
  name: 'serviceaccount-token-controller',
  aliases: ['serviceaccount-token'],
  account: 'tokens-controller',
  actsAsManager: true,
  maxRetries: 10,
  watches: [related(Secrets, keysOfSecret), related(ServiceAccounts, secretsOf)],
  rules: [
    rule('', 'secrets', 'create delete get list update watch'),
    rule('', 'serviceaccounts', 'get list update watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const tools = await tokenToolsOf(context)
    if (tools === undefined) return
    if (key.startsWith(REFERENCE)) return dropReference(key.slice(REFERENCE.length), context)
    const secret = context.cache.get(Secrets, key)
    if (secret === undefined || secret.type !== TYPE) return
    const account = await accountOf(secret, context)
    if (account === undefined) await remove(secret, context)
    else await fill(secret, account, tools, context)
  },
})

function keysOfSecret(secret: Secret): string[] {
  if (secret.type !== TYPE) return []
  const { namespace, name, annotations = {} } = secret.metadata
  return [objectKey(secret), `${REFERENCE}${keyOf(namespace, annotations[ACCOUNT_NAME] ?? '')}/${name}`]
}

function secretsOf({ metadata: { namespace = '', name } }: ServiceAccount, cache: Cache): string[] {
  const isOf = ({ type, metadata: { annotations } }: Secret): boolean =>
    type === TYPE && annotations?.[ACCOUNT_NAME] === name
  return cache.inNamespace(Secrets, namespace).filter(isOf).map(objectKey)
}

/** The account of a Secret. Asks the server before a deletion, because the cache may be stale. */
async function accountOf({ metadata }: Secret, context: ControllerContext): Promise<ServiceAccount | undefined> {
  const { namespace, annotations = {} } = metadata
  const name = annotations[ACCOUNT_NAME] ?? ''
  const uid = annotations[ACCOUNT_UID] ?? ''
  if (name === '') return undefined
  const isMeant = (account: ServiceAccount): boolean => uid === '' || account.metadata.uid === uid
  const known = context.cache.get(ServiceAccounts, keyOf(namespace, name))
  if (known !== undefined && isMeant(known)) return known
  const live = await found(context.client.get(ServiceAccounts, { namespace, name }, { signal: context.signal }))
  return live !== undefined && isMeant(live) ? live : undefined
}

async function remove({ metadata }: Secret, { client, signal }: ControllerContext): Promise<void> {
  const { namespace, name = '', uid } = metadata
  const preconditions = uid === undefined ? {} : { uid }
  await found(client.delete(Secrets, { namespace, name }, { preconditions, signal }))
}

async function fill(
  secret: Secret,
  account: ServiceAccount,
  { signer, bundle }: TokenTools,
  { client, signal }: ControllerContext,
): Promise<void> {
  const { namespace = '', name = '', uid } = secret.metadata
  if (missing(secret, bundle) === undefined) return
  const live = await found(client.get(Secrets, { namespace, name }, { signal }))
  if (live === undefined || live.metadata.uid !== uid) return
  const wanted = missing(live, bundle)
  if (wanted === undefined) return
  const { name: accountName = '', uid: accountUid = '' } = account.metadata
  const token = signer.sign({
    iss: ISSUER,
    'kubernetes.io/serviceaccount/namespace': namespace,
    'kubernetes.io/serviceaccount/secret.name': name,
    'kubernetes.io/serviceaccount/service-account.name': accountName,
    'kubernetes.io/serviceaccount/service-account.uid': accountUid,
    sub: `system:serviceaccount:${namespace}:${accountName}`,
  })
  const annotations = {
    ...live.metadata.annotations,
    [ACCOUNT_NAME]: accountName,
    [ACCOUNT_UID]: accountUid,
  }
  const data = {
    ...live.data,
    ...(wanted.bundle && { 'ca.crt': base64(bundle) }),
    ...(wanted.namespace && { namespace: base64(namespace) }),
    ...(wanted.token && { token: base64(token) }),
  }
  await client.update(Secrets, { ...live, metadata: { ...live.metadata, annotations }, data }, { signal })
}

/** The missing fields of the Secret; undefined if it is complete. */
function missing(
  { data = {} }: Secret,
  bundle: string,
): { readonly bundle: boolean; readonly namespace: boolean; readonly token: boolean } | undefined {
  const lacks = {
    bundle: bundle !== '' && data['ca.crt'] !== base64(bundle),
    namespace: (data['namespace'] ?? '') === '',
    token: (data['token'] ?? '') === '',
  }
  return lacks.bundle || lacks.namespace || lacks.token ? lacks : undefined
}

/** Removes a deleted Secret from the account's `secrets` list. */
async function dropReference(text: string, { cache, client, signal }: ControllerContext): Promise<void> {
  const slash = text.lastIndexOf('/')
  const { namespace, name } = splitKey(text.slice(0, slash))
  const secret = text.slice(slash + 1)
  if (cache.get(Secrets, keyOf(namespace, secret)) !== undefined) return
  const isListed = (account: ServiceAccount | undefined): account is ServiceAccount =>
    account?.secrets?.some((one) => one.name === secret) ?? false
  if (!isListed(cache.get(ServiceAccounts, keyOf(namespace, name)))) return
  const live = await found(client.get(ServiceAccounts, { namespace, name }, { signal }))
  if (!isListed(live)) return
  const secrets = live.secrets?.filter((one) => one.name !== secret) ?? []
  await found(client.update(ServiceAccounts, { ...live, secrets }, { signal }))
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

async function found<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

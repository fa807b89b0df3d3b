/** Token cleaner: deletes bootstrap tokens when they expire. */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { parseTime } from '#meta/time.ts'
import { related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, defineController } from '../controller.ts'

const NAMESPACE = 'kube-system'
const TYPE = 'bootstrap.kubernetes.io/token'

export const tokenCleanerController: Controller = defineController({
  name: 'token-cleaner-controller',
  aliases: ['tokencleaner'],
  account: 'token-cleaner',
  isOptional: true,
  workers: 1,
  watches: [related(Secrets, (secret) => (isToken(secret) ? [objectKey(secret)] : []))],
  rules: [rule('', 'secrets', 'delete get list watch'), EVENTS],

  async reconcile(key, { cache, client, clock, signal }) {
    const secret = cache.get(Secrets, key)
    const endsMs = secret === undefined ? undefined : endOf(secret)
    if (secret === undefined || endsMs === undefined) return undefined
    const leftMs = endsMs - clock.now()
    if (leftMs > 0) return { requeueAfterMs: leftMs }
    const { namespace, name = '', uid = '' } = secret.metadata
    await client.delete(Secrets, { namespace, name }, { preconditions: { uid }, signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    return undefined
  },
})

function isToken({ type, metadata }: Secret): boolean {
  return type === TYPE && metadata.namespace === NAMESPACE
}

/** Undefined without expiration; an invalid one counts as expired. */
function endOf({ data = {} }: Secret): number | undefined {
  const text = Buffer.from(data['expiration'] ?? '', 'base64').toString()
  if (text === '') return undefined
  try {
    return parseTime(text).seconds * 1000
  } catch {
    return 0
  }
}

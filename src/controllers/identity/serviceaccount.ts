/** ServiceAccount controller: maintains the account `default` in every namespace. */
import { Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import { keyOf } from '#meta/object.ts'
import { isAlreadyExists, isNamespaceTerminating } from '#meta/status.ts'
import { itself, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, defineController } from '../controller.ts'

const NAME = 'default'

export const serviceAccountController: Controller = defineController({
  name: 'serviceaccount-controller',
  aliases: ['serviceaccount'],
  account: 'service-account-controller',
  workers: 1,
  watches: [
    itself(Namespaces),
    related(ServiceAccounts, ({ metadata }) => (metadata.name === NAME ? [metadata.namespace ?? ''] : [])),
  ],
  rules: [rule('', 'serviceaccounts', 'create'), EVENTS],

  async reconcile(namespace, { cache, client, signal }) {
    if (cache.get(Namespaces, namespace)?.status.phase !== 'Active') return
    if (cache.get(ServiceAccounts, keyOf(namespace, NAME)) !== undefined) return
    try {
      await client.create(ServiceAccounts, { metadata: { namespace, name: NAME } }, { signal })
    } catch (error) {
      if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error
    }
  },
})

/** ServiceAccount controller: every namespace has the account `default`, and gets it back when somebody removes it. */
import { Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import { keyOf } from '#meta/object.ts'
import { isAlreadyExists } from '#meta/status.ts'

import { type Controller, defineController, itself, related, rule, EVENTS } from './controller.ts'
import { isNamespaceGoing } from './pod-creation.ts'

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
      if (!isAlreadyExists(error) && !isNamespaceGoing(error)) throw error
    }
  },
})

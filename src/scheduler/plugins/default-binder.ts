/** DefaultBinder: creates the Binding of a pod. */
import { type Binding, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'

import { definePlugin, failed, type Handle, type PluginFactory } from '../framework/framework.ts'

export const defaultBinder: PluginFactory = definePlugin({
  name: 'DefaultBinder',
  create: ({ client }: Handle) => ({
    async bind({ pod }, node, signal) {
      const { namespace = '', name = '', uid = '' } = pod.metadata
      const binding: Binding = {
        kind: 'Binding',
        apiVersion: 'v1',
        metadata: { namespace, name, uid },
        target: { kind: 'Node', name: node },
      }
      try {
        // The response of a subresource is not a Pod.
        await client.create(Pods as Kind as Kind<Binding>, binding, { subresource: 'binding', signal })
        return undefined
      } catch (error) {
        return failed((error as Error).message)
      }
    },
  }),
})

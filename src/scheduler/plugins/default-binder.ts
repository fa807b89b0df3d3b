/** DefaultBinder: tells the API server which node the pod is on. */
import { type Binding, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'

import { definePlugin, failed, type Handle, type PluginFactory } from '../framework.ts'

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
        // What is made below a pod is no pod.
        await client.create(Pods as Kind as Kind<Binding>, binding, { subresource: 'binding', signal })
        return undefined
      } catch (error) {
        return failed((error as Error).message)
      }
    },
  }),
})

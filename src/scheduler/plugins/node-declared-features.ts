/** NodeDeclaredFeatures: rejects nodes that do not declare a feature that the pod needs. */
import { Nodes, type PodSpec } from '#apis/core/v1.ts'

import { definePlugin, type PluginFactory, unresolvable } from '../framework/framework.ts'

const LACKING = unresolvable("node(s) didn't match Pod's required features")

/** Features that nodes declare, and the pods that need each. */
const NEEDS: readonly (readonly [feature: string, needs: (spec: PodSpec) => boolean])[] = [
  [
    'RestartAllContainersOnContainerExits',
    ({ containers, initContainers = [] }) =>
      [...containers, ...initContainers].some(({ restartPolicyRules = [] }) =>
        restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
      ),
  ],
  ['UserNamespacesHostNetworkSupport', ({ hostNetwork, hostUsers }) => hostNetwork === true && hostUsers === false],
]

export const nodeDeclaredFeatures: PluginFactory = definePlugin({
  name: 'NodeDeclaredFeatures',
  create: ({ isEnabled }) =>
    isEnabled('NodeDeclaredFeatures')
      ? {
          eventsToRegister: [
            { resource: Nodes, actions: ['add', 'features'] },
            { resource: 'TargetPod', actions: ['update'] },
          ],
          preFilter({ pod }) {
            const needed = NEEDS.filter(([, needs]) => needs(pod.spec)).map(([feature]) => feature)
            if (needed.length === 0) return undefined
            return {
              filter({ node }) {
                const declared = node?.status.declaredFeatures ?? []
                return needed.every((feature) => declared.includes(feature)) ? undefined : LACKING
              },
            }
          },
        }
      : {},
})

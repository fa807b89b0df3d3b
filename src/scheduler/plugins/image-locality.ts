/** ImageLocality: prefers nodes that have the pod's images, weighted by size and number of nodes. */
import type { PodInfo } from '../cluster/pod-info.ts'
import { definePlugin, type Handle, MAX_SCORE, type PluginFactory } from '../framework/framework.ts'

/** Smaller sums score 0. */
const MIN_BYTES = 23 << 20
/** The size of a container's image that counts at most. */
const MAX_BYTES = 1000 << 20

export const imageLocality: PluginFactory = definePlugin({
  name: 'ImageLocality',
  create: ({ cluster }: Handle) => ({
    preScore(pod) {
      const images = imagesOf(pod).flatMap((name) => cluster.images.of(name) ?? [])
      if (images.length === 0) return undefined
      const containers = (pod.pod.spec.initContainers?.length ?? 0) + pod.pod.spec.containers.length
      const most = MAX_BYTES * containers
      const all = cluster.nodes.length
      return {
        score({ name }) {
          let sum = 0
          for (const { bytes, nodes } of images) if (nodes.has(name)) sum += Math.trunc(bytes * (nodes.size / all))
          const bounded = Math.min(Math.max(sum, MIN_BYTES), most)
          return Math.floor((MAX_SCORE * (bounded - MIN_BYTES)) / (most - MIN_BYTES))
        },
      }
    },
  }),
})

function imagesOf({ pod: { spec } }: PodInfo): string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers].map(({ image = '' }) => image)
  const volumes = (spec.volumes ?? []).flatMap(({ image }) => image?.reference ?? [])
  return [...containers, ...volumes].map((name) =>
    name.lastIndexOf(':') <= name.lastIndexOf('/') ? `${name}:latest` : name,
  )
}

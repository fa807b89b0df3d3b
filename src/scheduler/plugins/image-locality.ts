/** ImageLocality: nodes that have the pod's images already are better, the larger and the more widespread those are. */
import { definePlugin, type Handle, MAX_SCORE, type PluginFactory } from '../framework.ts'
import type { PodInfo } from '../pod-info.ts'

/** Less is not worth it. */
const MIN_BYTES = 23 << 20
/** More counts no more, for each container. */
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

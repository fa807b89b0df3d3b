/** Summary of a pod, and the parts of it that pod templates share. */
import type { Pod, PodSpec, Toleration, Volume } from '#apis/core/v1.ts'

import { containerSections } from './containers.ts'
import { type Cell, fields, link, type Section, since, table } from './section.ts'

export function podSections(pod: Pod): readonly Section[] {
  const { spec, status, metadata } = pod
  const namespace = metadata.namespace ?? ''
  const ips = (status.podIPs ?? []).map(({ ip }) => ip)
  return [
    fields('Pod', [
      ['Node', spec.nodeName === undefined ? undefined : link('v1', 'Node', spec.nodeName)],
      ['Pod IP', ips.length > 0 ? ips : status.podIP],
      ['Host IP', status.hostIP],
      ['QoS class', status.qosClass],
      ['Started', since(status.startTime)],
      [
        'Service account',
        spec.serviceAccountName === undefined
          ? undefined
          : link('v1', 'ServiceAccount', spec.serviceAccountName, namespace),
      ],
      ['Restart policy', spec.restartPolicy],
      [
        'Priority',
        spec.priorityClassName === undefined
          ? spec.priority
          : link('scheduling.k8s.io/v1', 'PriorityClass', spec.priorityClassName),
      ],
      ['Node selector', Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`)],
      ['Tolerations', (spec.tolerations ?? []).map(tolerationText)],
      ['Finalizers', metadata.finalizers],
    ]),
    ...containerSections(spec, namespace, pod),
    ...volumeTable(spec, namespace),
  ]
}

export function volumeTable({ volumes = [] }: PodSpec, namespace: string): readonly Section[] {
  return table(
    'Volumes',
    ['Name', 'Type', 'Source'],
    volumes.map((volume) => [volume.name, ...volumeSource(volume, namespace)]),
  )
}

function volumeSource(volume: Volume, namespace: string): readonly [type: string, source: Cell] {
  const { configMap, secret, persistentVolumeClaim: claim, hostPath, emptyDir, projected } = volume
  if (configMap?.name !== undefined) return ['ConfigMap', link('v1', 'ConfigMap', configMap.name, namespace)]
  if (secret?.secretName !== undefined) return ['Secret', link('v1', 'Secret', secret.secretName, namespace)]
  if (claim !== undefined)
    return ['PersistentVolumeClaim', link('v1', 'PersistentVolumeClaim', claim.claimName, namespace)]
  if (hostPath !== undefined) return ['hostPath', hostPath.path]
  if (emptyDir !== undefined) return ['emptyDir', emptyDir.sizeLimit ?? emptyDir.medium ?? '']
  if (projected !== undefined) return ['projected', (projected.sources ?? []).flatMap((one) => Object.keys(one))]
  return [Object.keys(volume).find((key) => key !== 'name') ?? '', '']
}

/** `key=value:NoSchedule for 300s`. */
export function tolerationText({ key = '', operator, value = '', effect = '', tolerationSeconds }: Toleration): string {
  const what = key === '' ? 'everything' : operator === 'Exists' ? key : `${key}=${value}`
  const forHowLong = tolerationSeconds === undefined ? '' : ` for ${tolerationSeconds}s`
  return `${what}${effect === '' ? '' : `:${effect}`}${forHowLong}`
}

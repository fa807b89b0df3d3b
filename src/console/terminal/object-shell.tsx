/** The shell tab of a pod. The address can name a container that is still starting, such as a debug container. */
import type { VNode } from 'preact'

import type { Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { Notice } from '../parts/notice.tsx'
import { location } from '../routing/router.tsx'
import { containerStart, runningContainers } from './running-containers.ts'
import { TerminalPage } from './terminal-page.tsx'

interface ObjectShellProps {
  readonly cluster: string
  readonly object: KubeObject
}

export function ObjectShell({ cluster, object }: ObjectShellProps): VNode {
  const pod = object as Pod
  const { container: wanted = '', attach = '' } = location.value.query
  const running = runningContainers(pod)
  if (wanted !== '' && !running.includes(wanted)) return <Notice {...containerStart(pod, wanted)} />
  if (running.length === 0) return <Notice title="No container runs" text="A shell needs a running container." />
  const { namespace = '', name = '' } = pod.metadata
  const containers = wanted === '' ? running : [wanted, ...running.filter((one) => one !== wanted)]
  const props = { cluster, namespace, pod: name, containers, isAttached: attach === '1' }
  return <TerminalPage key={`${name}/${wanted}`} {...props} />
}

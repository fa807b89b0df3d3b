/** The shell tab of a pod. */
import type { VNode } from 'preact'

import type { Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { Notice } from '../parts/notice.tsx'
import { TerminalPage } from './terminal-page.tsx'

interface ObjectShellProps {
  readonly cluster: string
  readonly object: KubeObject
}

export function ObjectShell({ cluster, object }: ObjectShellProps): VNode {
  const { metadata, status } = object as Pod
  const running = [...(status?.containerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])]
    .filter(({ state }) => state?.running !== undefined)
    .map(({ name }) => name)
  if (running.length === 0) return <Notice title="No container runs" text="A shell needs a running container." />
  const { namespace = '', name = '' } = metadata
  return <TerminalPage key={name} cluster={cluster} namespace={namespace} pod={name} containers={running} />
}

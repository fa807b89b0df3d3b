/** The table columns of nodes. */
import type { Node } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { Column } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'

const ROLE_PREFIX = 'node-role.kubernetes.io/'
const ROLE_LABEL = 'kubernetes.io/role'

export const nodeColumns: readonly Column<Node>[] = [
  nameColumn,
  { name: 'Status', value: statusText },
  { name: 'Roles', value: rolesText },
  ageColumn,
  { name: 'Version', value: ({ status }) => status?.nodeInfo?.kubeletVersion ?? '' },
  { name: 'Internal-IP', wide: true, value: (node) => addressOf(node, 'InternalIP') },
  { name: 'External-IP', wide: true, value: (node) => addressOf(node, 'ExternalIP') },
  { name: 'OS-Image', wide: true, value: ({ status }) => status?.nodeInfo?.osImage || '<unknown>' },
  { name: 'Kernel-Version', wide: true, value: kernelText },
  {
    name: 'Container-Runtime',
    wide: true,
    value: ({ status }) => status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
  },
]

function statusText({ spec, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const word = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'
  return spec?.unschedulable === true ? `${word},SchedulingDisabled` : word
}

function rolesText({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).map(([name, value]) => {
    if (name.startsWith(ROLE_PREFIX)) return name.slice(ROLE_PREFIX.length)
    return name === ROLE_LABEL ? value : ''
  })
  const found = [...new Set(roles.filter((role) => role !== ''))]
  return found.length === 0 ? '<none>' : found.sort(compareText).join(',')
}

function addressOf({ status }: Node, type: string): string {
  return status?.addresses?.find((address) => address.type === type)?.address ?? '<none>'
}

function kernelText({ status }: Node): string {
  const version = status?.nodeInfo?.kernelVersion || '<unknown>'
  const architecture = status?.nodeInfo?.architecture ?? ''
  return architecture === '' ? version : `${version} (${architecture})`
}

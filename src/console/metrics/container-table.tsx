/** The use of each container of a pod against its requests and limits. */
import type { VNode } from 'preact'

import type { Container, Pod } from '#apis/core/v1.ts'

import { amountText, RESOURCES, type Resource } from './amount.ts'
import { Bar } from './bar.tsx'
import { containerDemand } from './demand.ts'
import type { Part } from './reading.ts'

interface ContainerTableProps {
  readonly pod: Pod
  readonly parts: readonly Part[]
}

/** A pod has less containers. */
const MAX_ROWS = 50

export function ContainerTable({ pod, parts }: ContainerTableProps): VNode {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec
  const all: readonly Container[] = [...containers, ...initContainers, ...(ephemeralContainers as readonly Container[])]
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Use of containers">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Container</th>
            <th scope="col">CPU of its limit</th>
            <th scope="col">CPU request</th>
            <th scope="col">Memory of its limit</th>
            <th scope="col">Memory request</th>
          </tr>
        </thead>
        <tbody>
          {parts.slice(0, MAX_ROWS).map((part) => (
            <tr key={part.name}>
              <td>
                <bdi>{part.name}</bdi>
              </td>
              {RESOURCES.map((resource) => (
                <Cells key={resource} {...{ resource, part }} container={all.find(({ name }) => name === part.name)} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface CellsProps {
  readonly resource: Resource
  readonly part: Part
  readonly container: Container | undefined
}

function Cells({ resource, part, container }: CellsProps): VNode {
  const { request, limit } = container === undefined ? {} : containerDemand(container, resource)
  return (
    <>
      <td>
        {limit === undefined ? (
          `${amountText(resource, part.use[resource])}, no limit`
        ) : (
          <Bar resource={resource} used={part.use[resource]} whole={limit} />
        )}
      </td>
      <td>{request === undefined ? 'none' : amountText(resource, request)}</td>
    </>
  )
}

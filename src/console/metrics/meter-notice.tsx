/** Says why the use of an object is not shown, or is old. */
import type { VNode } from 'preact'

import { CopyButton } from '../parts/copy-button.tsx'
import type { Metering } from './meter.ts'

const COMMAND =
  'kubectl apply -f https://github.com/kubernetes-sigs/metrics-server/releases/latest/download/components.yaml'

export function MeterNotice({ state, reading, points }: Metering): VNode | null {
  switch (state.type) {
    case 'live':
      return null
    case 'loading':
      return <p class="muted">Loading the use …</p>
    case 'unmeasured':
      return (
        <p class="muted">The metrics API has no values yet. Kubelets measure running containers every 15 seconds.</p>
      )
    case 'absent':
      return (
        <div>
          <p class="muted">This cluster has no metrics API, so its use is not known. Install metrics-server:</p>
          <pre class="command" role="region" aria-label="Command" tabIndex={0}>
            {COMMAND}
          </pre>
          <CopyButton text={COMMAND} name="the command" />
        </div>
      )
    case 'failed': {
      const since = points.at(-1)?.timeMs
      const old =
        reading === undefined || since === undefined
          ? ''
          : `These values are of ${new Date(since).toLocaleTimeString()}. `
      const why = state.code === 403 ? 'You may not read the metrics API' : 'The metrics API does not answer'
      return (
        <p class="words words-busy" role="status">
          {`${old}${why}: ${state.message}`}
        </p>
      )
    }
  }
}

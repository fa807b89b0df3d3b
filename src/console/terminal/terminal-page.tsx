/** A shell in a container, or its main process (attach). */
import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { clusterPath, objectPath } from '../api/kinds.ts'

export interface TerminalPageProps {
  readonly cluster: string
  readonly namespace: string
  readonly pod: string
  readonly containers: readonly string[]
  /** Connects to the main process first, which is the shell of a debug container. */
  readonly isAttached?: boolean
}

type State = 'connecting' | 'open' | { readonly ended: string }

export function TerminalPage({ cluster, namespace, pod, containers, isAttached }: TerminalPageProps): VNode {
  const [container, setContainer] = useState(containers[0] ?? '')
  const [mode, setMode] = useState<'exec' | 'attach'>(isAttached === true ? 'attach' : 'exec')
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState<State>('connecting')
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    setState('connecting')
    const path = clusterPath(cluster, pathOf({ namespace, pod, container, mode }))
    return openLazily(element.current, path, setState)
  }, [cluster, namespace, pod, container, mode, attempt])
  return (
    <div class="terminal-page">
      <div class="logs-bar">
        <select
          aria-label="Container"
          value={container}
          onChange={({ currentTarget }) => setContainer(currentTarget.value)}
        >
          {containers.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select
          aria-label="What to connect to"
          value={mode}
          onChange={({ currentTarget }) => setMode(currentTarget.value === 'attach' ? 'attach' : 'exec')}
        >
          <option value="exec">New shell</option>
          <option value="attach">Main process</option>
        </select>
        <span class={state === 'open' ? 'state state-live' : 'state'} role="status">
          {state === 'connecting' && 'Connecting …'}
          {state === 'open' && (mode === 'exec' ? 'Connected' : 'Connected. Enter shows the prompt of a shell')}
          {typeof state === 'object' && (state.ended === '' ? 'The command has ended' : state.ended)}
        </span>
        {typeof state === 'object' && (
          <button type="button" onClick={() => setAttempt(attempt + 1)}>
            Connect again
          </button>
        )}
      </div>
      <div class="shell-screen" ref={element} />
    </div>
  )
}

/** Returns a function that closes the terminal, also one that is still being loaded. */
function openLazily(element: HTMLElement | null, path: string, setState: (state: State) => void): () => void {
  let close: (() => void) | undefined
  let isClosed = false
  const open = async (): Promise<void> => {
    const { openTerminal } = await import('./terminal-view.ts')
    if (isClosed || element === null) return
    const onEnd = (ended: string): void => setState({ ended })
    close = openTerminal(element, { path, onEnd, onOpen: () => setState('open') })
  }
  open().catch((error: unknown) => setState({ ended: `The terminal cannot be loaded: ${String(error)}` }))
  return () => {
    isClosed = true
    close?.()
  }
}

const PODS = { group: '', version: 'v1', plural: 'pods' }
/** The best shell of the container. */
const SHELL = ['sh', '-c', 'command -v bash >/dev/null 2>&1 && exec bash || exec sh']

interface Target {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly mode: 'exec' | 'attach'
}

function pathOf({ namespace, pod, container, mode }: Target): string {
  const query = new URLSearchParams({ container, stdin: 'true', stdout: 'true', tty: 'true' })
  if (mode === 'exec') for (const word of SHELL) query.append('command', word)
  return `${objectPath(PODS, { namespace, name: pod }, mode)}?${query.toString()}`
}

/** The log of an Operation, followed while it is open. It scrolls with new lines as long as its end is in sight. */
import type { VNode } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { saveText } from '../browser/save-text.ts'
import { sleep } from '../browser/time.ts'
import { endOfLog, followLog, withShortTimes } from './follow-log.ts'

export interface OperationLogProps {
  readonly cluster: string
  readonly name: string
  readonly isEnded: boolean
  readonly title: string
}

export function OperationLog(props: OperationLogProps): VNode {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <section class="box">
      <button type="button" class="quiet stage-head" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
        <strong>Log</strong>
      </button>
      {isOpen && <LogText {...props} />}
    </section>
  )
}

const AGAIN_MS = 3000

function LogText({ cluster, name, title }: OperationLogProps): VNode {
  const { text, state } = useLog(cluster, name)
  const box = useRef<HTMLPreElement>(null)
  const isAtEnd = useRef(true)
  useLayoutEffect(() => {
    if (isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [text])
  return (
    <>
      <pre
        class="operation-log"
        ref={box}
        role="log"
        aria-label="Log of the operation"
        aria-live="off"
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) =>
          (isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 20)
        }
      >
        {text === '' ? 'The log is empty.' : withShortTimes(text)}
      </pre>
      <div class="form-actions">
        <button type="button" onClick={() => saveText(`${title}.log`, text)}>
          Download
        </button>
        <span class={state === 'live' ? 'state state-live' : 'state'}>{STATES[state] ?? state}</span>
      </div>
    </>
  )
}

const STATES: Readonly<Record<string, string>> = {
  live: 'Following',
  ended: 'Complete',
}

function useLog(cluster: string, name: string): { readonly text: string; readonly state: string } {
  const [shown, setShown] = useState({ text: '', state: 'live' })
  useEffect(() => {
    const stop = new AbortController()
    const read = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        let text = ''
        const add = (piece: string): void => {
          text = endOfLog(text + piece)
          setShown({ text, state: 'live' })
        }
        try {
          await followLog(cluster, name, add, stop.signal)
          setShown((before) => ({ ...before, state: 'ended' }))
          return
        } catch (error) {
          if (stop.signal.aborted) return
          const message = error instanceof RequestError ? error.message : 'The connection was lost'
          setShown((before) => ({ ...before, state: `${message}. Trying again …` }))
          await sleep(AGAIN_MS, stop.signal)
        }
      }
    }
    read().catch(() => undefined)
    return () => stop.abort()
  }, [cluster, name])
  return shown
}

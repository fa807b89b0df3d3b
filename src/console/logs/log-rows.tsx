/** The lines of logs in a window that scrolls. A click on a line shows all of it, as JSON if it is. */
import type { VNode } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

import { plainText, styledTexts } from './ansi.ts'
import type { FromLogWorker, LogLine } from './messages.ts'

export interface LogRowsProps {
  readonly data: Extract<FromLogWorker, { type: 'lines' }> | undefined
  /** Of the sources. Empty: not shown. */
  readonly labels: readonly string[]
  readonly isFollowing: boolean
  readonly onVisible: (from: number, count: number, isAtEnd: boolean) => void
}

const LINE_PX = 20
const SPARE_LINES = 20
/** 400,000 lines. The scroll bar of a longer log is less exact. */
const MAX_HEIGHT_PX = 8_000_000

export function LogRows({ data, labels, isFollowing, onVisible }: LogRowsProps): VNode {
  const box = useRef<HTMLDivElement>(null)
  const [chosen, setChosen] = useState<LogLine>()
  const { shown = 0, from = 0, lines = [] } = data ?? {}
  const height = Math.min(MAX_HEIGHT_PX, shown * LINE_PX)
  const scale = height / Math.max(1, shown * LINE_PX)
  const show = (): void => {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {}
    const first = Math.max(0, Math.floor(scrollTop / scale / LINE_PX) - SPARE_LINES)
    const isAtEnd = scrollTop + clientHeight >= scrollHeight - LINE_PX
    onVisible(first, Math.ceil(clientHeight / LINE_PX) + 2 * SPARE_LINES, isAtEnd)
  }
  useEffect(show, [])
  useLayoutEffect(() => {
    if (isFollowing && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [isFollowing, shown, lines])
  return (
    <>
      <div class="log-rows" ref={box} onScroll={show} tabIndex={0} role="log" aria-label="Log lines" aria-live="off">
        <div class="log-space" style={{ height: `${height}px` }}>
          <div
            class="log-window"
            style={{ top: `${Math.min(from * LINE_PX * scale, height - lines.length * LINE_PX)}px` }}
          >
            {lines.map((line, at) => (
              <div key={from + at} class="log-line" onClick={() => setChosen(line)}>
                {labels.length > 0 && <span class={`log-source source-${line.source % 8}`}>{labels[line.source]}</span>}
                <span class="log-time">{line.time.slice(11, 23)}</span>
                <LineText text={line.text} />
              </div>
            ))}
          </div>
        </div>
      </div>
      {chosen && (
        <div class="log-detail">
          <button type="button" onClick={() => setChosen(undefined)}>
            Close
          </button>
          <span class="muted">{chosen.time}</span>
          <pre>{readable(chosen.text)}</pre>
        </div>
      )}
    </>
  )
}

function LineText({ text }: { readonly text: string }): VNode {
  return (
    <span>
      {styledTexts(text).map(({ text: part, color, isBold }, at) => (
        <span key={at} class={`${color === undefined ? '' : `ansi-${color}`} ${isBold === true ? 'ansi-bold' : ''}`}>
          {part}
        </span>
      ))}
    </span>
  )
}

const MAX_DETAIL = 200_000

function readable(line: string): string {
  const text = plainText(line)
  try {
    if (text.startsWith('{')) return JSON.stringify(JSON.parse(text), undefined, 2).slice(0, MAX_DETAIL)
  } catch {
    // Not JSON.
  }
  return text.slice(0, MAX_DETAIL)
}

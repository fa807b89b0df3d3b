/** Logs of one or many containers, merged by time: follow, search, filter, download. */
import type { VNode } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'

import { saveText } from '../browser/save-text.ts'
import { Notice } from '../parts/notice.tsx'
import { openLogs } from './log-client.ts'
import { LogRows } from './log-rows.tsx'
import { type LogContainer, type LogOptions, sourcesOf } from './log-sources.ts'
import type { FromLogWorker, SourceState } from './messages.ts'

export interface LogPageProps {
  readonly cluster: string
  readonly containers: readonly LogContainer[]
  /** For the name of a downloaded file. */
  readonly title: string
}

const FIRST_LINES = 80

export function LogPage({ cluster, containers, title }: LogPageProps): VNode {
  const [options, setOptions] = useState<LogOptions>({ tailLines: 1000, isPrevious: false, container: '' })
  const [filter, setFilter] = useState('')
  const [from, setFrom] = useState<number>()
  const [count, setCount] = useState(FIRST_LINES)
  const sources = useMemo(() => sourcesOf(cluster, containers, options), [cluster, keyOf(containers), options])
  const logs = useMemo(() => openLogs(), [])
  useEffect(() => () => logs.close(), [logs])
  useEffect(() => {
    logs.open(sources, { filter, from: undefined, count })
    setFrom(undefined)
  }, [logs, sources])
  useEffect(() => logs.setView({ filter, from, count }), [logs, filter, from, count])
  const data = logs.lines.value
  if (containers.length === 0) return <Notice title="There are no containers" text="Logs appear when a pod starts." />
  const labels = sources.map(({ label }) => label)
  return (
    <div class="logs">
      <div class="logs-bar">
        <LogControls {...{ containers, options, setOptions, filter, setFilter }} />
        <button type="button" onClick={() => void logs.text().then((text) => saveText(`${title}.log`, text))}>
          Download
        </button>
        <button
          type="button"
          aria-pressed={from === undefined}
          onClick={() => setFrom(from === undefined ? data?.from : undefined)}
        >
          {from === undefined ? 'Following' : 'Follow'}
        </button>
        <LogState data={data} labels={labels} />
      </div>
      <LogRows
        data={data}
        labels={labels.length > 1 ? labels : []}
        isFollowing={from === undefined}
        onVisible={(first, rows, isAtEnd) => {
          setCount(rows)
          setFrom(isAtEnd ? undefined : first)
        }}
      />
    </div>
  )
}

interface LogControlsProps extends OptionProps {
  readonly containers: readonly LogContainer[]
  readonly filter: string
  readonly setFilter: (filter: string) => void
}

function LogControls({ containers, options, setOptions, filter, setFilter }: LogControlsProps): VNode {
  return (
    <>
      <ContainerSelect containers={containers} options={options} setOptions={setOptions} />
      <TailSelect options={options} setOptions={setOptions} />
      <label>
        <input
          type="checkbox"
          checked={options.isPrevious}
          onChange={({ currentTarget }) => setOptions({ ...options, isPrevious: currentTarget.checked })}
        />{' '}
        Before the last restart
      </label>
      <input
        type="search"
        class="filter"
        placeholder="Search, or /regular expression/"
        aria-label="Search in the logs"
        value={filter}
        onInput={({ currentTarget }) => setFilter(currentTarget.value)}
      />
    </>
  )
}

function keyOf(containers: readonly LogContainer[]): string {
  return containers.map(({ pod, container }) => `${pod}/${container}`).join()
}

interface OptionProps {
  readonly options: LogOptions
  readonly setOptions: (options: LogOptions) => void
}

function ContainerSelect({
  containers,
  options,
  setOptions,
}: OptionProps & { readonly containers: readonly LogContainer[] }): VNode {
  const names = [...new Set(containers.map(({ container }) => container))]
  return (
    <select
      aria-label="Container"
      value={options.container}
      onChange={({ currentTarget }) => setOptions({ ...options, container: currentTarget.value })}
    >
      <option value="">All containers</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}

const TAILS = [100, 1000, 10_000, 100_000]

function TailSelect({ options, setOptions }: OptionProps): VNode {
  return (
    <select
      aria-label="Lines"
      value={String(options.tailLines)}
      onChange={({ currentTarget }) => setOptions({ ...options, tailLines: Number(currentTarget.value) })}
    >
      {TAILS.map((lines) => (
        <option key={lines} value={String(lines)}>{`Last ${lines.toLocaleString('en')}`}</option>
      ))}
      <option value="0">All</option>
    </select>
  )
}

type Lines = Extract<FromLogWorker, { type: 'lines' }>

function LogState({ data, labels }: { readonly data: Lines | undefined; readonly labels: readonly string[] }): VNode {
  if (data === undefined) return <span class="state">Loading …</span>
  const { total, shown, dropped, filterError, sources } = data
  const failures = sources.flatMap((state, at) => (typeof state === 'object' ? [`${labels[at]}: ${state.error}`] : []))
  const lines =
    shown === total
      ? `${total.toLocaleString('en')} lines`
      : `${shown.toLocaleString('en')} of ${total.toLocaleString('en')} lines`
  return (
    <>
      <span class={`state ${isLive(sources) ? 'state-live' : ''}`}>
        {lines}
        {dropped > 0 && `, ${dropped.toLocaleString('en')} older ones dropped`}
      </span>
      {[...failures, ...(filterError === '' ? [] : [filterError])].map((text) => (
        <span key={text} class="cause" role="alert">
          {text}
        </span>
      ))}
    </>
  )
}

function isLive(sources: readonly SourceState[]): boolean {
  return sources.includes('open')
}

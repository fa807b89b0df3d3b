/** A port forward that is open: its link, its address for other programs, its counts, and a button that stops it. */
import type { VNode } from 'preact'

import { CopyButton } from '../parts/copy-button.tsx'
import { type Forward, stopForward } from './forwards.ts'

export interface ForwardRowProps {
  readonly forward: Forward
  readonly onError: (error: unknown) => void
}

/** The link has a host of its own: browsers would send the cookie of the console to every port of 127.0.0.1. */
export function ForwardRow({ forward, onError }: ForwardRowProps): VNode {
  const { link, localPort, sentBytes, receivedBytes, connections, openConnections, errors, lastError, pod } = forward
  const address = `127.0.0.1:${localPort}`
  return (
    <div class="forward">
      <p>
        <a href={link} target="_blank" rel="noopener noreferrer">
          {link}
        </a>{' '}
        <CopyButton text={link} name={`the link ${link}`} />
      </p>
      <p class="muted">
        {'Other programs use '}
        <code>{address}</code> <CopyButton text={address} name={`the address ${address}`} />
      </p>
      <p class="muted">
        {`${countText(openConnections, 'open connection')} of ${connections}, ${bytesText(sentBytes)} sent, ${bytesText(receivedBytes)} received`}
        {forward.kind === 'Service' && pod !== undefined && `, by pod ${pod}`}
      </p>
      {errors > 0 && (
        <p class="words words-bad">{`${countText(errors, 'error')}, the last one: ${lastError ?? 'unknown'}`}</p>
      )}
      <button type="button" aria-label={`Stop ${link}`} onClick={() => void stopForward(forward).catch(onError)}>
        Stop
      </button>
    </div>
  )
}

function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

function bytesText(bytes: number): string {
  let [rest, at] = [bytes, 0]
  for (; rest >= 1000 && at < UNITS.length - 1; at++) rest /= 1024
  return `${Number(rest.toPrecision(3))} ${UNITS[at] ?? ''}`
}

/** Objects that a page shows whole, kept fresh by a watch for as long as the page shows them. */
import { useEffect, useRef, useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { RequestError, sendForJson } from '../api/request.ts'
import { isSessionExpired } from '../browser/session.ts'
import { socketMessages } from '../browser/socket-messages.ts'
import { now, random, sleep } from '../browser/time.ts'
import { isAwake, networkChanges } from '../browser/visibility.ts'
import { followObjects, type ObjectListener, type ObjectSource } from '../lists/follow-objects.ts'
import type { ListState } from '../lists/messages.ts'

export interface LiveObjects {
  readonly objects: readonly KubeObject[]
  /** False: the server has more objects than are here. */
  readonly isWhole: boolean
  readonly state: ListState
}

const LOADING: LiveObjects = { objects: [], isWhole: true, state: { type: 'loading' } }
/** Changes are drawn together, at most so often. */
const DRAW_EVERY_MS = 100

/** The objects of a list path. Without a path nothing is read. `keep` may not change while the path does not. */
export function useLive(path: string | undefined, keep?: ObjectSource['keep']): LiveObjects {
  const [shown, setShown] = useState({ path, live: LOADING })
  const awake = isAwake.value
  const [session, network] = [isSessionExpired.value, networkChanges.value]
  useEffect(() => {
    if (path === undefined) return undefined
    const show = (change: (before: LiveObjects) => LiveObjects): void =>
      setShown((before) => ({ path, live: change(before.path === path ? before.live : LOADING) }))
    if (!awake) {
      show((before) => ({
        ...before,
        state: { type: 'stale', sinceMs: now(), message: 'The page was hidden', code: 0 },
      }))
      return undefined
    }
    const stop = new AbortController()
    read({ path, keep }, show, stop.signal)
    return () => stop.abort()
  }, [path, awake, session, network])
  return shown.path === path ? shown.live : LOADING
}

type Show = (change: (before: LiveObjects) => LiveObjects) => void

function read(source: ObjectSource, show: Show, signal: AbortSignal): void {
  const tools = {
    fetch: (target: string, init: RequestInit) => fetch(target, init),
    messages: socketMessages,
    sleep,
    random,
  }
  followObjects(source, listenerOf(show, signal), tools, signal).catch((error: unknown) => {
    const { code = 0, status = {}, message } = error instanceof RequestError ? error : { message: String(error) }
    const reason = status.reason ?? ''
    // A user who may no longer list the objects must not see them either.
    if (!signal.aborted) show(() => ({ objects: [], isWhole: true, state: { type: 'failed', code, reason, message } }))
  })
}

function listenerOf(show: Show, signal: AbortSignal): ObjectListener {
  const byUid = new Map<string, KubeObject>()
  let isDrawing = false
  const draw = (): void => {
    isDrawing = false
    show((before) => ({ ...before, objects: [...byUid.values()] }))
  }
  const drawSoon = (): void => {
    if (isDrawing) return
    isDrawing = true
    sleep(DRAW_EVERY_MS, signal).then(draw, () => undefined)
  }
  return {
    replaced(objects, isWhole) {
      byUid.clear()
      for (const object of objects) byUid.set(uidOf(object), object)
      show((before) => ({ ...before, objects, isWhole }))
    },
    changed(object) {
      byUid.set(uidOf(object), object)
      drawSoon()
    },
    deleted(object) {
      byUid.delete(uidOf(object))
      drawSoon()
    },
    live: () => show((before) => ({ ...before, state: { type: 'live' } })),
    lost: ({ message, code }) =>
      show((before) => {
        const sinceMs = before.state.type === 'stale' ? before.state.sinceMs : now()
        return { ...before, state: { type: 'stale', sinceMs, message, code } }
      }),
  }
}

function uidOf({ metadata }: KubeObject): string {
  return metadata.uid ?? `${metadata.namespace ?? ''}/${metadata.name ?? ''}`
}

export interface LiveObject {
  /** The last state that the server sent. */
  readonly object: KubeObject | undefined
  /** The object was here and is gone. */
  readonly deletedAtMs: number | undefined
  readonly state: ListState
}

/** One object by its name. It stays after it was deleted, but not after the user lost the right to read it. `path` is that of its list, `own` that of the object. */
export function useLiveObject(path: string, own: string, name: string): LiveObject {
  const live = useLive(`${path}?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`)
  const last = useRef<{ object: KubeObject | undefined; deletedAtMs: number | undefined }>({
    object: undefined,
    deletedAtMs: undefined,
  })
  const single = useOnce(live.state.type === 'failed' && live.state.code === 403 ? own : undefined)
  const object = live.objects.find(({ metadata }) => metadata.name === name) ?? single.object
  if (object !== undefined || live.state.type === 'failed') last.current = { object, deletedAtMs: undefined }
  else if (live.state.type === 'live' && last.current.object !== undefined) last.current.deletedAtMs ??= now()
  return { ...last.current, state: single.state ?? live.state }
}

/** Reads an object once, for users who may get it and not watch it. */
function useOnce(path: string | undefined): { object?: KubeObject; state?: ListState } {
  const [got, setGot] = useState<{ object?: KubeObject; state?: ListState }>({})
  useEffect(() => {
    if (path === undefined) return
    const message = 'You may read this object, but not watch it'
    const state: ListState = { type: 'stale', sinceMs: now(), message, code: 403 }
    sendForJson<KubeObject>(path).then(
      (object) => setGot({ object, state }),
      () => undefined,
    )
  }, [path])
  return got
}

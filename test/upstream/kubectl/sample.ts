/** Selects the command lines of a run, by pattern or by chance. */
import { createHash } from 'node:crypto'

import type { Scene } from './scene.ts'

export interface Choice {
  readonly only?: RegExp
  readonly scene?: RegExp
  /** About so many lines. */
  readonly sample?: number
  readonly seed: number
}

/** Scenes in which a line depends on those before are taken whole or not at all; with `only`, as far as its last match. */
export function chosen(scenes: readonly Scene[], { only, scene, sample, seed }: Choice): Scene[] {
  const named = scenes.filter(({ name }) => scene === undefined || scene.test(name))
  const matching = only === undefined ? named : named.flatMap((each) => matchesIn(each, only))
  return sample === undefined ? matching : sampled(matching, sample, seed)
}

function matchesIn(scene: Scene, only: RegExp): Scene[] {
  const isWanted = (line: string): boolean => only.test(line)
  if (scene.mode === 'reads') return [{ ...scene, lines: scene.lines.filter(isWanted) }]
  const last = scene.lines.findLastIndex(isWanted)
  return last < 0 ? [] : [{ ...scene, lines: scene.lines.slice(0, last + 1) }]
}

function sampled(scenes: readonly Scene[], sample: number, seed: number): Scene[] {
  const total = scenes.reduce((sum, { lines }) => sum + lines.length, 0)
  // The same text is in or out wherever else lines are added.
  const isIn = (text: string): boolean => {
    const drawn = createHash('sha256').update(`${seed} ${text}`).digest().readUInt32BE() / 2 ** 32
    return drawn < sample / total
  }
  return scenes.flatMap((scene) => {
    if (scene.mode !== 'reads') return isIn(scene.name) ? [scene] : []
    return [{ ...scene, lines: scene.lines.filter(isIn) }]
  })
}

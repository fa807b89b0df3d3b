/** A share as a bar, with the amounts in words beside it. */
import type { VNode } from 'preact'

import { amountText, type Resource, shareText } from './amount.ts'

export interface BarProps {
  readonly resource: Resource
  readonly used: number
  readonly whole: number
}

const WIDTH = 100
const BUSY = 0.8
const FULL = 0.95

export function Bar({ resource, used, whole }: BarProps): VNode {
  const share = whole <= 0 ? 0 : Math.min(1, used / whole)
  const tone = share >= FULL ? 'bad' : share >= BUSY ? 'busy' : 'good'
  const of = whole <= 0 ? '' : ` of ${amountText(resource, whole)} (${shareText(used, whole) ?? '0 %'})`
  return (
    <span class="share">
      <svg class="share-bar" viewBox={`0 0 ${WIDTH} 8`} preserveAspectRatio="none" aria-hidden="true">
        <rect class="share-whole" width={WIDTH} height="8" />
        <rect class={`share-${tone}`} width={WIDTH * share} height="8" />
      </svg>
      <span>{`${amountText(resource, used)}${of}`}</span>
    </span>
  )
}

/** Draws the chain of causes: why an object is not ready. */
import type { VNode } from 'preact'

import { ObjectLink } from '../objects/object-link.tsx'
import { LongText } from '../parts/long-text.tsx'
import type { Cause } from './cause.ts'

export interface WhyViewProps {
  readonly cluster: string
  readonly causes: readonly Cause[]
}

export function WhyView({ cluster, causes }: WhyViewProps): VNode | null {
  if (causes.length === 0) return null
  const isBad = causes.some(({ tone }) => tone === 'bad')
  return (
    <section class={`why why-${isBad ? 'bad' : 'busy'}`} aria-labelledby="why">
      <h2 id="why">Why it is not ready</h2>
      <ol>
        {causes.map(({ text, detail = '', to }, at) => (
          <li key={at}>
            {to === undefined ? (
              <bdi>{text}</bdi>
            ) : (
              <ObjectLink cluster={cluster} to={to}>
                <bdi>{text}</bdi>
              </ObjectLink>
            )}
            {detail !== '' && (
              <div class="why-detail">
                <LongText text={detail} name="message" />
              </div>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}

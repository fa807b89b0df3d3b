/** The page of a view: its title, and its content as soon as the browser has loaded it. */
import type { ComponentType, VNode } from 'preact'

import { Lazy } from '../parts/lazy.tsx'
import { Notice } from '../parts/notice.tsx'

interface View<P> {
  readonly name: string
  readonly title: string
  /** Its component shows the title. */
  readonly hasOwnHead?: boolean
  readonly load: () => Promise<ComponentType<P>>
}

export interface ViewPageProps<P> {
  readonly views: readonly View<P>[]
  readonly name: string
  readonly props: P
}

export function ViewPage<P>({ views, name, props }: ViewPageProps<P>): VNode {
  const view = views.find((one) => one.name === name)
  if (view === undefined) return <Notice title="This page does not exist" text={`There is no page "${name}".`} />
  return (
    <section class="page">
      {view.hasOwnHead !== true && (
        <header class="page-head">
          <h1>{view.title}</h1>
        </header>
      )}
      <Lazy load={view.load} props={props} />
    </section>
  )
}

/** The entry of the console: shows the page of the current address. */
import './style/tokens.css'
import './style/layout.css'
import './style/logs.css'
import './style/metrics.css'
import './style/parts.css'
import './style/objects.css'
import './style/server.css'
import './style/people.css'
import './style/forced-colors.css'
import { render } from 'preact'

import { App } from './app.tsx'
import { applyTheme } from './browser/theme.ts'
import { startRouter } from './routing/router.tsx'

applyTheme()
startRouter()
const root = document.querySelector('#app')
if (root === null) throw new Error('The page has no element with the id "app"')
render(<App />, root)
